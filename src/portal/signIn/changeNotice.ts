/**
 * E-mails after a change of how a person signs in, so that nobody makes one in their name unseen. The row is written in the
 * transaction of the change, and sent as every notice is. Decision D-43.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { minuteOf } from "../../delivery/notices/noticeTexts.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { command } from "../../runtime/temporal/commands.ts"
import * as Id from "../../values/Id.ts"

const STOLEN =
  "somebody else can use your account. On the account page of the portal, remove every passkey that is not yours, change your " +
  "password, renew the backup codes and end all other sessions. Revoke every API key that you did not create; if you " +
  "are an owner, check the webhooks and their URLs, too. Tell an owner of your organization: if you cannot " +
  "sign in, the operator of the service can close the account at once."

/** What was changed, what it means, and what follows if the person did not do it. */
const changes = {
  "password-reset": {
    what: "The password of your account",
    was: "was changed",
    effect:
      "It was changed with a link that was sent to this address. All sessions of the account were ended. Your authenticator, " +
      "backup codes and passkeys are the same as before.",
    otherwise: "somebody can read your e-mail. Secure your mailbox, and tell the operator of the service at once."
  },
  "password-changed": {
    what: "The password of your account",
    was: "was changed",
    effect: "It was changed on the account page. All other sessions of the account were ended.",
    otherwise: STOLEN
  },
  "passkey-added": {
    what: "A passkey of your account",
    was: "was added",
    effect: "It signs in and confirms actions without your password.",
    otherwise: STOLEN
  },
  "passkey-removed": {
    what: "A passkey of your account",
    was: "was removed",
    effect: "It no longer signs in. All other sessions of the account were ended.",
    otherwise: STOLEN
  },
  "backup-codes-renewed": {
    what: "The backup codes of your account",
    was: "were renewed",
    effect: "The earlier codes no longer work.",
    otherwise: STOLEN
  }
} as const

const decode = decodeRows(Schema.Struct({ organizationId: Schema.String, name: Schema.String, email: Schema.String }))

/** Writes the notice. Run it in the transaction of the change. */
export const noteChange = (sql: SqlClient.SqlClient, userId: string, change: keyof typeof changes) =>
  Effect.gen(function* () {
    const { client } = yield* currentRequest
    const { effect, otherwise, was, what } = changes[change]
    const id = Id.make("ntc")
    const at = minuteOf(new Date().toISOString())
    for (const { email, name, organizationId } of yield* decode(sql`
      SELECT organization_id AS "organizationId", name, email FROM users WHERE id = ${userId}`)) {
      const subject = `${what} in the custody portal ${was}`
      const body =
        `Hello ${name},\n\n${subject} on ${at}${client === undefined ? "" : ` from ${client}`}. ${effect}\n\n` +
        `If it was not you, ${otherwise}\n`
      yield* sql`
        INSERT INTO notices (id, organization_id, cause, recipient, subject, body)
        VALUES (${id}, ${organizationId}, ${`${change}/${id}`}, ${email}, ${subject}, ${body})`
      yield* command(sql, id)
    }
  })
