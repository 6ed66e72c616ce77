/** The texts of e-mails that were asked for: a link for a new password, or why there is none. */
import type { Text } from "../../delivery/notices/noticeTexts.ts"

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
