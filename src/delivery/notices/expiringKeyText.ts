/** The text of the e-mail about an API key that expires soon: which key, its last use, and how to rotate it. C-13. */
import { minuteOf, rows, type Text } from "./noticeTexts.ts"

/** The content of the e-mail. Times are UTC ISO 8601. */
export interface ExpiringKey {
  readonly id: string
  readonly label: string
  /** First and last characters of its secret. */
  readonly hint: string
  readonly userName: string
  readonly expiresAt: string
  readonly lastUsedAt: string | null
  readonly lastUsedAddress: string | null
  /** Whether the recipient is the key's user. */
  readonly isTheirs: boolean
}

/** A label in an e-mail, which its readers trust: no sentences, and no invisible characters. */
const shown = (label: string): string => label.replace(/[\p{Cf}\p{Zl}\p{Zp}]/gu, "").slice(0, 60)

const lastUse = ({ lastUsedAddress, lastUsedAt }: ExpiringKey): string =>
  lastUsedAt === null ? "never" : `${minuteOf(lastUsedAt)}${lastUsedAddress === null ? "" : ` from ${lastUsedAddress}`}`

/** The text. It names the time of the expiry and not the time left, because a mail server may delay it. */
export const expiringKeyText = ({ label, ...known }: ExpiringKey): Text => {
  const key = { ...known, label: shown(label) }
  return {
    subject: `API key ${key.label === "" ? key.hint : `"${key.label}"`} expires on ${minuteOf(key.expiresAt)}`,
    body:
      `${key.isTheirs ? "Your API key" : `An API key of ${key.userName}`} expires on ${minuteOf(key.expiresAt)}. Requests with it are rejected ` +
      `with 401 from then on.\n\n` +
      `${rows([
        ["Label", key.label === "" ? "none" : key.label],
        ["Key", key.hint],
        ["Id", key.id],
        ["User", key.userName],
        ["Expires", minuteOf(key.expiresAt)],
        ["Last used", lastUse(key)]
      ])}\n\n` +
      `${key.isTheirs ? "To rotate it" : `Only ${key.userName} can rotate it`}: under API keys in the portal, Rotate creates a key with the same access, ` +
      `and the old key keeps working for a time that you choose. Deploy the new secret within that time. The expiry can be ` +
      `extended there, too, and a key that nothing uses can be revoked.\n`
  }
}
