/**
 * What the audit log shows of a webhook's changes: no path or query of a URL, which may contain a secret of the endpoint, and no
 * values of headers or secrets. Decision D-50, C-12.
 */
import { type Changes, changed } from "../../access/audit/AuditTrail.ts"
import type { CredentialChange } from "./changedCredentials.ts"
import * as url from "./url.ts"
import type { Webhook } from "./Webhook.ts"

const fields = ["url", "status", "entityIds", "eventKinds", "vaultIds", "description", "notificationEmail", "headers", "oauth"] as const

/** Null stands for none, in both. */
const namesOf = (headers: Webhook["headers"]) => (headers.length === 0 ? null : headers.map(({ name }) => name))
const oauthOf = (oauth: Webhook["oauth"]) => {
  if (oauth === null) return null
  const { clientSecret: _, tokenUrl, ...rest } = oauth
  return { tokenUrl: url.originOf(tokenUrl), ...rest }
}

const shown = (webhook: Webhook) => ({
  ...webhook,
  url: url.originOf(webhook.url),
  headers: namesOf(webhook.headers),
  oauth: oauthOf(webhook.oauth)
})

/** The changes by a creation, or by an update that had these credentials. */
export const changesOf = (before: Webhook | undefined, now: Webhook, { headers, oauth }: CredentialChange): Changes => {
  const is = shown(now)
  if (before === undefined) return changed(fields, undefined, is)
  const was = shown(before)
  // Changes that do not show in what is shown.
  const hidden = {
    url: now.url !== before.url,
    headers: headers?.some(({ value }) => value !== null) === true,
    oauth: oauth?.clientSecret != null || now.oauth?.tokenUrl !== before.oauth?.tokenUrl
  }
  const also = (["url", "headers", "oauth"] as const).flatMap((field) =>
    hidden[field] ? [[field, { old: was[field], new: is[field] }]] : []
  )
  return { ...changed(fields, was, is), ...Object.fromEntries(also) }
}
