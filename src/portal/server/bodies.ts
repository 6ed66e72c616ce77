/** The bodies of the portal's own routes. */
import { Schema } from "effect"
import { isStorable } from "../../values/givenId.ts"
import { TimestampParam } from "../../values/Timestamp.ts"
import { PASSWORD_MAX, PASSWORD_MIN } from "../signIn/passwordRules.ts"

/** Text of at most `max` characters. Postgres cannot store NUL. */
export const text = (max: number) =>
  Schema.String.pipe(
    Schema.filter((value) => (value.length <= max && isStorable(value)) || `must have at most ${max} characters and no NUL`)
  )

const NewPassword = text(PASSWORD_MAX).pipe(
  Schema.filter((value) => value.length >= PASSWORD_MIN || `must have at least ${PASSWORD_MIN} characters`)
)

/** Proof of the second factor for one action: a code, or a passkey's response. */
export const Confirmation = Schema.Struct({
  code: Schema.optional(text(40)),
  passkey: Schema.optional(Schema.Unknown)
})
export type Confirmation = typeof Confirmation.Type

export const Credentials = Schema.Struct({ email: text(320), password: text(1_000) })
export const Code = Schema.Struct({ code: text(40) })
export const Token = Schema.Struct({ token: text(100) })
export const Acceptance = Schema.Struct({ token: text(100), password: Schema.NullOr(NewPassword) })

export const Confirmed = Schema.Struct({ confirmation: Confirmation })
export const NamedPasskey = Schema.Struct({ name: text(100), answer: Schema.Unknown })
export const PasswordChange = Schema.Struct({ current: text(1_000), next: NewPassword, confirmation: Confirmation })

/** `ApiKeys` validates their content. */
const keyFields = {
  label: Schema.String,
  scopes: Schema.Array(Schema.String),
  /** null allows every vault on which the user has the Developer role. */
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)),
  ipAllowlist: Schema.Array(Schema.String),
  /** null means no expiry. */
  expiresAt: Schema.NullOr(TimestampParam)
}
export const KeyCreation = Schema.Struct({ ...keyFields, expiresAt: Schema.optional(keyFields.expiresAt), confirmation: Confirmation })
export const KeyEdit = Schema.partialWith(Schema.Struct({ ...keyFields, confirmation: Confirmation }), { exact: true })
