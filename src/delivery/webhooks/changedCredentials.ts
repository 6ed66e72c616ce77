/**
 * A webhook's headers and OAuth client credentials after a creation or an update. What is stored stays secret from whoever changes
 * the URL or the token URL to one of another origin: then every secret value must be sent again. C-12.
 */
import { Effect } from "effect"
import { fieldIssue, invalidFields } from "../../http/Body.ts"
import { type GatewayCredentials, NONE } from "../gateway/gatewayCredentials.ts"
import { type PatchedHeaders, withValues } from "../gateway/headers.ts"
import { merged, type PatchedOAuth } from "../gateway/oauth.ts"
import { originOf } from "./url.ts"
import type { Webhook } from "./Webhook.ts"

/** What a body says of them; undefined changes nothing, null removes them. */
export interface CredentialChange {
  readonly headers?: PatchedHeaders | null | undefined
  readonly oauth?: PatchedOAuth | null | undefined
}

/** A webhook whose credentials are changed. */
export interface Known extends Pick<Webhook, "url" | "headers" | "oauth"> {
  /** Its stored credentials; undefined if they cannot be decrypted, and can then only be replaced. */
  readonly stored: GatewayCredentials | undefined
}

/** The credentials from now on. `href` is the URL from now on; `known` is undefined for a creation. */
export const changedCredentials = Effect.fnUntraced(function* (
  { headers, oauth }: CredentialChange,
  href: string,
  known: Known | undefined
) {
  const isElsewhere = (now: string, before: string | undefined) => before !== undefined && originOf(now) !== originOf(before)
  const moves = isElsewhere(href, known?.url) || (oauth?.tokenUrl !== undefined && isElsewhere(oauth.tokenUrl, known?.oauth?.tokenUrl))
  const isLost = known !== undefined && known.stored === undefined
  const kept = moves ? NONE : (known?.stored ?? NONE)
  if (moves || isLost) {
    const why = `must be sent again, because ${moves ? "the host or port of url or tokenUrl changes" : "what is stored cannot be decrypted"}`
    const again = [
      ...(headers === undefined && known?.headers.length !== 0 ? [fieldIssue("headers", why)] : []),
      ...(oauth !== null && known?.oauth != null && oauth?.clientSecret == null ? [fieldIssue("oauth.clientSecret", why)] : [])
    ]
    if (again.length > 0) return yield* invalidFields(again)
  }
  const now: GatewayCredentials = {
    headers: headers === undefined ? kept.headers : yield* withValues(headers ?? [], kept.headers),
    oauth: oauth === undefined ? kept.oauth : oauth === null ? null : yield* merge(oauth, known, kept)
  }
  const authorization = now.headers.findIndex(([name]) => name.toLowerCase() === "authorization")
  if (now.oauth !== null && authorization >= 0)
    return yield* invalidFields([fieldIssue(`headers.${authorization}.name`, "must not be Authorization beside oauth, which sets it")])
  return now
})

const merge = (patch: PatchedOAuth, known: Known | undefined, kept: GatewayCredentials) => {
  const before = known?.oauth == null ? undefined : { ...known.oauth, clientSecret: kept.oauth?.clientSecret }
  const now = merged(patch, before)
  return "tokenUrl" in now ? Effect.succeed(now) : invalidFields(now.map((name) => fieldIssue(`oauth.${name}`, "is missing", "missing")))
}
