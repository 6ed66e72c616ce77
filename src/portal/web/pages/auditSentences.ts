/** Entries of the audit log as sentences: who did what to what. */
import type { Action } from "../../../access/audit/AuditTrail.ts"
import type { AuditEntry } from "../../../client/index.ts"
import type { FactorUsed } from "../../signIn/SecondFactor.ts"

/** What was done; the target's name follows, unless it is the account of the person. */
const did: Readonly<Record<Action, string>> = {
  "webhook.created": "created the webhook",
  "webhook.updated": "changed the webhook",
  "webhook.deleted": "deleted the webhook",
  "webhook.secret_rotated": "rotated the signing secret of the webhook",
  "webhook.pinged": "asked for a test event to the webhook",
  "webhook.disabled": "disabled the webhook",
  "webhook.held": "found the endpoint down, and holds deliveries of the webhook",
  "webhook.released": "found the endpoint up again, and sends held deliveries of the webhook",
  "webhook.deliveries_retried": "retried all waiting deliveries of the webhook",
  "webhook.deliveries_canceled": "canceled all waiting deliveries of the webhook",
  "recovery.created": "started a recovery of missed events for the webhook",
  "recovery.paused": "paused a recovery of the webhook",
  "recovery.resumed": "resumed a recovery of the webhook",
  "recovery.canceled": "canceled a recovery of the webhook",
  "delivery.redelivered": "sent a delivery again to the webhook",
  "delivery.retried": "retried a waiting delivery to the webhook",
  "delivery.canceled": "canceled a waiting delivery to the webhook",
  "user.created": "created the user",
  "user.updated": "changed the user",
  "api_key.created": "created the API key",
  "api_key.updated": "changed the API key",
  "api_key.revoked": "revoked the API key",
  "account.invited": "invited",
  "account.invitation_accepted": "accepted the invitation",
  "account.signed_in": "signed in",
  "account.sign_in_failed": "tried to sign in, with a wrong password, as",
  "account.second_factor_added": "set up an authenticator app",
  "account.second_factor_failed": "gave a wrong code of the second factor",
  "account.backup_code_used": "used a backup code",
  "account.locked": "was locked out after too many wrong codes",
  "account.password_changed": "changed the password",
  "account.password_reset_requested": "asked for a link to change the password of",
  "account.password_reset": "set a new password with a link from an e-mail",
  "account.backup_codes_renewed": "made new backup codes",
  "account.passkey_added": "added a passkey",
  "account.passkey_removed": "removed a passkey",
  "account.sessions_ended": "ended other sessions",
  "master_key.reencrypted": "encrypted stored secrets with a new master key for",
  "organization.exported": "exported the data of",
  "organization.deleting": "began to delete",
  "organization.deleted": "deleted"
}

/** How somebody signed in, by the second factor. */
const signedIn = {
  authenticator: "signed in with an authenticator app",
  backup_code: "signed in with a backup code",
  passkey: "signed in with a passkey"
} as const satisfies Readonly<Record<FactorUsed, string>>
const isFactor = (value: unknown): value is FactorUsed => typeof value === "string" && Object.hasOwn(signedIn, value)

const isKnown = (action: string): action is Action => Object.hasOwn(did, action)

/** The actions, for a choice. */
export const actions = Object.keys(did)

/** An action as words: “Webhook secret rotated”. */
export const actionWords = (action: string): string => {
  const words = action.replaceAll(/[._]/g, " ").replace("api key", "API key")
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const others = { key: "An API key", session: "Somebody", operator: "An operator", platform: "The custody platform", service: "The service" }

/** What anybody can do who knows an address: the person of the account need not be the actor. */
const anonymous: ReadonlySet<string> = new Set<Action>(["account.sign_in_failed", "account.password_reset_requested"])

export interface Sentence {
  readonly who: string
  /** The user who acted; null if it is not known, or nobody did. */
  readonly person: string | null
  readonly what: string
  /** The name of the target; undefined if it is the person. */
  readonly target: string | undefined
  /** What follows the target; empty if nothing does. */
  readonly more: string
}

/** Most vaults that a sentence names. */
const NAMED = 3

/** Which vaults a new key may read. A change from “all” to “all” is not recorded. */
const vaultsOf = (vaultIds: unknown, nameOf: (id: string) => string): string => {
  if (!Array.isArray(vaultIds)) return "for all vaults"
  const names = vaultIds.map((id) => nameOf(String(id)))
  return names.length > NAMED
    ? `for ${names.length} vaults`
    : `for the ${names.length === 1 ? "vault" : "vaults"} ${new Intl.ListFormat("en").format(names)}`
}

/** The sentence of an entry; `nameOf` returns an id without a name unchanged. */
export const sentenceOf = ({ action, actor, changes, target }: AuditEntry, nameOf: (id: string) => string): Sentence => {
  const person = anonymous.has(action) ? null : actor.userId
  const own = target.type === "account" && target.id === person
  const factor = changes["secondFactor"]?.new
  return {
    who: person === null ? others[actor.type] : nameOf(person),
    person,
    what:
      action === "account.sessions_ended" && !own
        ? "ended the sessions of"
        : action === "account.signed_in" && isFactor(factor)
          ? signedIn[factor]
          : isKnown(action)
            ? did[action]
            : `${actionWords(action).toLowerCase()}:`,
    target: own ? undefined : nameOf(target.id),
    more: action === "api_key.created" ? vaultsOf(changes["vaultIds"]?.new, nameOf) : ""
  }
}

/** `previousSecretExpiresAt` as “previous secret expires at”. */
export const fieldWords = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** A recorded value of a field as text; ids become names. */
export const valueWords = (field: string, value: unknown, nameOf: (id: string) => string): string => {
  // Of a key or a webhook.
  if (field === "vaultIds" && value === null) return "all"
  if (value === null || value === undefined || value === "") return "none"
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map((one) => valueWords(field, one, nameOf)).join(", ")
  return typeof value === "string" ? nameOf(value) : JSON.stringify(value)
}
