/** The texts of e-mails about new passwords: a link, why there is none, and that a password was changed. */
import { minuteOf, type Text } from "../../delivery/notices/noticeTexts.ts"

const subject = "Your password for the custody portal"
const ASKED = "Somebody, probably you, asked for a new password for your account in the custody portal."
const NOT_YOU = "If it was not you, ignore this e-mail: nothing has changed."

/** The e-mail with the link. */
export const resetText = (name: string, minutes: number): Text => ({
  subject,
  body:
    `Hello ${name},\n\n${ASKED}\n\nThe link works once, for ${minutes} minutes. Do not pass it on. It changes only the password: you ` +
    `still need your authenticator or a backup code to sign in.\n\n${NOT_YOU}\n`
})

/** The e-mail to a person whose account gets no link: it has no password, or no second factor that would protect it. */
export const noResetText = ({
  hasPassword,
  name,
  provider
}: {
  readonly name: string
  readonly hasPassword: boolean
  /** The identity provider's name, null without one. */
  readonly provider: string | null
}): Text => ({
  subject,
  body: `Hello ${name},\n\n${ASKED}\n\n${
    hasPassword
      ? "You have not set up a second factor yet, so the password cannot be changed by e-mail."
      : `Your account has no password: you sign in with ${provider === null ? "" : `${provider} or `}a passkey.`
  } If you cannot sign in, ask an owner of your organization to request a new invitation from the operator of the service.\n\n${NOT_YOU}\n`
})

/** The e-mail after a change. */
export const changedText = ({
  at,
  from,
  name
}: {
  readonly name: string
  /** UTC ISO 8601. */
  readonly at: string
  /** The client's address; undefined if it is unknown. */
  readonly from: string | undefined
}): Text => ({
  subject: "Your password for the custody portal was changed",
  body:
    `Hello ${name},\n\nThe password of your account in the custody portal was changed on ${minuteOf(at)}` +
    `${from === undefined ? "" : ` from ${from}`}, with a link that was sent to this address. All sessions of the account were ended. ` +
    `Your authenticator, backup codes and passkeys are the same as before.\n\n` +
    `If it was not you, somebody can read your e-mail. Secure your mailbox, and tell the operator of the service at once.\n`
})
