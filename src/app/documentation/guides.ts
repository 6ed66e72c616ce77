/**
 * Guides: the Markdown files of `docs/` as pages beside the API reference. They are read once and load nothing from other
 * hosts. Each error code has a page, generated from the table of codes.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { apiCodes, type Code, codes } from "../../http/Problem.ts"
import { highlighted } from "./highlight.ts"
import { operations } from "./operations.ts"
import { bar, ERRORS, GUIDES, page, SEARCH } from "./page.ts"
import { headingsOf, plainText, type Result, type Section, search } from "./sections.ts"

const FOLDER = path.resolve(import.meta.dir, "../../../docs")

/** The guides by audience: path, file, title. */
const shelves: ReadonlyArray<readonly [string, ReadonlyArray<readonly [name: string, file: string, title: string]>]> = [
  [
    "For developers",
    [
      ["quick-start", "guides/quick-start.md", "Quick start"],
      ["verifying", "guides/verifying.md", "Verify signatures"],
      ["api-gateway", "guides/api-gateway.md", "Behind an API gateway"],
      ["retries", "guides/retries.md", "Retries and success"],
      ["miss-nothing", "guides/miss-nothing.md", "Miss nothing"],
      ["missed-events", "guides/missed-events.md", "Missed events"],
      ["paging", "guides/paging.md", "Paging and a mirror of all transactions"],
      ["statements", "statements.md", "Statements and exports"],
      ["year-end", "guides/year-end.md", "A year for an accountant"],
      ["going-live", "guides/going-live.md", "Going live"],
      ["versioning", "guides/versioning.md", "Versioning"],
      ["client", "client.md", "TypeScript client"]
    ]
  ],
  [
    "For operators",
    [
      ["operations", "operations.md", "Install, operate, upgrade"],
      ["runbooks", "runbooks.md", "Runbooks of alerts"],
      ["feed", "feed.md", "Feeding records"],
      ["delivery", "delivery.md", "How delivery works"],
      ["temporal", "temporal.md", "Temporal"],
      ["portal", "portal.md", "The web portal"],
      ["security", "security.md", "Security"],
      ["scale", "scale.md", "Sizing and growth"],
      ["benchmarks", "benchmarks.md", "Benchmarks"]
    ]
  ]
]
const guides = shelves.flatMap(([, shelf]) => shelf)

/** Links between files of docs/ become links between pages; the text of links to other files stays. */
const link = (anchor: HTMLRewriterTypes.Element): void => {
  const [file = "", hash] = (anchor.getAttribute("href") ?? "").split("#")
  if (file === "" || /^(https?:|\/v1\/)/.test(file)) return
  const target = guides.find(([, known]) => path.basename(known) === path.basename(file))
  if (target === undefined) anchor.removeAndKeepContent()
  else anchor.setAttribute("href", `${GUIDES}/${target[0]}${hash === undefined ? "" : `#${hash}`}`)
}

const rewriter = new HTMLRewriter()
  .on("a", { element: link })
  .on("pre", { element: (block) => void block.setAttribute("tabindex", "0") })
  // A table scrolls in its frame if it is wider than the page.
  .on("table", {
    element: (table) => {
      table.before('<div class="table" tabindex="0" role="region" aria-label="Table">', { html: true }).after("</div>", { html: true })
    }
  })
  .on("img", { element: (image) => void image.replace(image.getAttribute("alt") ?? "") })
  .onDocument({ comments: (comment) => void comment.remove() })

const html = (markdown: string): string => rewriter.transform(highlighted(Bun.markdown.html(markdown, { headings: { ids: true } })))

const side = (current: string): string =>
  `<nav class="guides" aria-label="Guides">${shelves
    .map(
      ([title, shelf]) =>
        `<h2>${title}</h2><ul>${shelf
          .map(([name, , label]) => `<li><a href="${GUIDES}/${name}"${name === current ? ' aria-current="page"' : ""}>${label}</a></li>`)
          .join("")}</ul>`
    )
    .join("")}</nav>`

/** A list of links to the parts of a page, if there is more than one. */
const contents = (main: string): string => {
  const parts = headingsOf(main).filter(({ level }) => level === 2)
  if (parts.length < 2) return ""
  const links = parts.map(({ id, title }) => `<li><a href="#${id}">${Bun.escapeHTML(title)}</a></li>`)
  return `<nav class="contents" aria-labelledby="contents"><h2 id="contents">On this page</h2><ul>${links.join("")}</ul></nav>`
}

const framed = (title: string, place: string, current: string, main: string, query = ""): string =>
  page(title, `${bar(place, query)}<div class="columns">${side(current)}${contents(main)}<main>${main}</main></div>`)

const rendered = guides.map(([name, file, title]) => [name, title, html(fs.readFileSync(path.join(FOLDER, file), "utf8"))] as const)

/** The guides by the last part of their paths. */
export const guidePages: ReadonlyMap<string, string> = new Map(
  rendered.map(([name, title, main]) => [name, framed(title, GUIDES, name, main)])
)

/** Every error of the API in a table. */
export const errorList: string = framed(
  "Errors",
  ERRORS,
  "",
  html(`# Errors

Every response that is not 2xx is \`application/problem+json\` (RFC 9457). Its \`code\` is stable: handle errors by it, and show
\`detail\` to people. \`type\` links to the page of the code. \`errors\` lists the invalid fields.

| Status | Code | Meaning |
| --- | --- | --- |
${apiCodes.map((code) => `| ${codes[code][0]} | [${code}](${ERRORS}/${code}) | ${codes[code][1]} |`).join("\n")}`)
)

/** Advice for an error by status, if its code has none. */
const byStatus: Readonly<Record<number, string>> = {
  400: "Correct the request: `errors` lists each invalid field, and `detail` says what is wrong. The same request will fail again.",
  401: "Send `Authorization: Bearer <API key>` with a key that is not revoked and not expired. Create keys in the portal.",
  403: "The key is valid but may not do this. Use a key with the scope, from an allowed address, or ask an owner of your organization.",
  404: `The response is the same for four causes, so that it reveals nothing:

- There is no such resource: check the id.
- The user of the key does not have the Developer role on the vault.
- The key has a vault allowlist that does not contain the vault.
- The key lacks the scope: \`vault:read\` for vaults, \`webhook:read\` for webhooks, events and deliveries.

\`GET /v1/credential\` answers any valid key. It shows the key's scopes, its allowlist and how many vaults it sees, and with \`?vaultId=\` why it does not see a vault.`,
  405: "The `Allow` header lists the methods of this path.",
  406: "Send `Accept: application/json` or no `Accept` header.",
  409: "The state of the resource does not allow this now. Read it again before you retry.",
  410: "The data is no longer stored. `detail` says how to continue.",
  413: "Bodies have at most 64 KiB.",
  414: "The request target has at most 8 KiB. Use fewer or shorter filters.",
  415: "Send the body with `Content-Type: application/json` and without `Content-Encoding`.",
  422: "The request is well-formed but cannot be carried out. `detail` says why.",
  429: "Wait for the number of seconds in `Retry-After`, then send the request again. The `RateLimit` header has the remaining quota.",
  500: "This is an error in the service. Retry later, and quote `requestId` when you report it.",
  503: "The service is temporarily unavailable. Wait for the number of seconds in `Retry-After`, then retry."
}

const advice: Partial<Readonly<Record<Code, string>>> = {
  invalid_cursor:
    "A cursor belongs to one list with its filters. Pass `nextCursor` back unchanged, with the same path and filters, or start at the first page.",
  unknown_parameter:
    "The path does not have this parameter. Unknown parameters are rejected so that a misspelled filter never returns unfiltered data. The API reference lists the known ones.",
  ip_not_allowed:
    "The key has an IP allowlist and `detail` shows the address that the service saw. Add it to the key in the portal, or call from an allowed address.",
  recovery_running: "Wait until the recovery has ended, or cancel it: `POST /v1/webhook-recoveries/{recoveryId}/cancel`.",
  recovery_ended: "Nothing is left to pause, resume or cancel. Create a new recovery for what is still missing.",
  not_sealed:
    "A UTC day is sealed six hours after its end, and a vault's statements begin 7 days before the vault was recorded here (the operator may have set other times). `detail` names the day that is not sealed yet: ask again later. If the response has `firstDate`, the vault's statements begin at that day, after the period: there is nothing to sum up.",
  webhook_disabled: 'Enable the webhook first (`PATCH` with `{ "status": "ACTIVE" }`), then send the request again.',
  webhook_limit_reached:
    "An entity can be covered by at most 20 active or paused webhooks, and by 100 with the disabled ones. Delete one that you no longer need.",
  rotation_limit_reached:
    'At most three secrets are valid at the same time. Wait until the oldest expires, 24 hours after its rotation, or rotate with `{ "expirePrevious": "now" }`, which ends all earlier ones.',
  redelivery_limit_reached:
    "The event's deliveries leave the log after 31 days. Until then read the event itself: `GET /v1/webhook-events/{eventId}`.",
  idempotency_key_reused: "The idempotency key was used with another body before. Use a new `Idempotency-Key` for a new request.",
  url_not_deliverable: "The host or port of the URL is not allowed: use a public host name and port 443 or 8443."
}

const adviceOn = (code: Code): string => advice[code] ?? byStatus[codes[code][0]] ?? ""

/** The pages of the error codes. */
export const errorPages: ReadonlyMap<string, string> = new Map(
  apiCodes.map((code) => {
    const [status, title] = codes[code]
    const text = `# ${title}\n\n\`${code}\`, status ${status}\n\n${adviceOn(code)}\n\n[All errors](${ERRORS})`
    return [code, framed(title, ERRORS, "", html(text))]
  })
)

/** Everything that a search looks at: the operations of the API, the guides by section, the errors. */
const sections: ReadonlyArray<Section> = [
  ...operations.map(({ description, href, method, path, summary }) => ({
    page: "API reference",
    title: `${summary}: ${method} ${path}`,
    href,
    text: plainText(Bun.markdown.html(description))
  })),
  ...rendered.flatMap(([name, page, main]) =>
    headingsOf(main).map(({ id, text, title }) => ({ page, title, href: `${GUIDES}/${name}#${id}`, text }))
  ),
  ...apiCodes.map((code) => ({
    page: "Errors",
    title: `${code}: ${codes[code][1]}`,
    href: `${ERRORS}/${code}`,
    text: plainText(Bun.markdown.html(adviceOn(code)))
  }))
]

const resultOf = ({ excerpt, section: { href, page, title } }: Result): string =>
  `<li><a href="${href}">${Bun.escapeHTML(title)}</a> <small>${page}</small><p>${Bun.escapeHTML(excerpt)}</p></li>`

/** The page with the results of a search. */
export const searchPage = (query: string): string => {
  const results = search(sections, query)
  const text = query === "" ? "Type what you look for above." : `Nothing contains all of “${Bun.escapeHTML(query)}”.`
  const list = results.length === 0 ? `<p>${text}</p>` : `<ul class="results">${results.map(resultOf).join("")}</ul>`
  return framed("Search", SEARCH, "", `<h1>Search</h1>${list}`, query)
}
