/** The demo's instructions: addresses, a key, commands to paste. */
import * as path from "node:path"
import type { DemoFile } from "./DemoFile.ts"
import type { PortalLink } from "./portalLink.ts"
import type { Screen } from "./Screen.ts"

type Content = typeof DemoFile.Type

/** Formats JSON in a shell, with what the demo needs anyway. */
const FORMAT = "node -p 'JSON.stringify(JSON.parse(fs.readFileSync(0)),null,2)'"

const workflows = ({ temporalUi }: Content) => `${temporalUi}/namespaces/default/workflows`

/** Prints addresses, the owner's key, the portal's link and commands to paste. */
export const show = (
  { line, style }: Screen,
  content: Content,
  {
    file,
    portal,
    statement
  }: { readonly file: string; readonly portal: PortalLink; readonly statement: { readonly vaultId: string; readonly day: string } }
): void => {
  const { baseUrl, entityIds, keys, playUrl, webhookId } = content
  const { day, vaultId } = statement
  const row = (name: string, text: string) => line(`   ${style.dim(name.padEnd(13))}${text}`)
  line()
  row("API", baseUrl)
  row("API docs", style.link(`${baseUrl}/v1/docs`))
  row("Temporal UI", style.link(workflows(content)))
  row("API key", keys.owner)
  row("more", path.relative(process.cwd(), file) || file)
  const who = portal.invited ? "as the owner: choose a password, set up an authenticator" : "sign in as the owner, as you did before"
  line(`\n ${style.bold("Portal")}  ${style.dim(who)}`)
  line(` ${style.link(portal.url)}`)
  line(`\n ${style.bold("Try it")}  ${style.dim("in another terminal, while this runs")}`)
  line(` curl -s ${baseUrl}/v1/vaults -H 'Authorization: Bearer ${keys.owner}' | ${FORMAT}`)
  const call = (what: string) => line(` curl -s -H "Authorization: Bearer $CUSTODY_API_KEY" ${what} | json`)
  line(style.dim(" or, shorter:"))
  line(` export CUSTODY_URL=${baseUrl} CUSTODY_API_KEY=${keys.owner}; json() { ${FORMAT}; }`)
  call('"$CUSTODY_URL/v1/webhook-events?limit=2"')
  call(`$CUSTODY_URL/v1/webhooks/${webhookId}`)
  line(style.dim(" balances of years ago, and the signed statement of a day:"))
  call(`"$CUSTODY_URL/v1/vaults/${vaultId}/balances?at=2021-12-31T23:59:59Z"`)
  call(`$CUSTODY_URL/v1/vaults/${vaultId}/statements/${day}`)
  line(style.dim(" a webhook of your own, to a receiver that accepts everything unverified:"))
  const own = { url: playUrl, entityIds, eventKinds: ["transaction.confirmed"], notificationEmail: "you@example.com" }
  call(`-H "Content-Type: application/json" -d '${JSON.stringify(own)}' $CUSTODY_URL/v1/webhooks`)
  line(style.dim(" follow events, and post them to your server with --forward-to:"))
  line(` npx --yes bun@1.4.5 run custody listen`)
}

/** The rows that stay at the bottom. */
export const footer =
  (content: Content) =>
  (status: string): ReadonlyArray<string> => [
    "",
    ` ${status} · docs ${content.baseUrl}/v1/docs`,
    ` Temporal UI ${workflows(content)} · Ctrl-C stops`
  ]
