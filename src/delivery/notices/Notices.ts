/**
 * Sends operational notices by e-mail. A notice is a row before it is a message; sending is a separate durable step,
 * retried until it succeeds. Nothing is sent while the row cannot be updated, and recording a sent message is retried
 * until it succeeds. The message id is derived from the notice, so a mail server can drop the duplicate that a crash
 * between sending and recording causes. Without SMTP_URL a notice is logged. One about a key that was revoked, has expired or
 * got another expiry meanwhile is dropped. Decision D-23. C-13.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Data, Effect, Layer, Predicate, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { whileUnavailable } from "../../runtime/database/unavailable.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { Mailer, type MailFailed } from "./Mailer.ts"
import { messageOf } from "./message.ts"

const decodeNotices = decodeRows(
  Schema.Struct({
    recipient: Schema.String,
    subject: Schema.String,
    body: Schema.String,
    channel: Schema.NullOr(Schema.String),
    webhookId: Schema.NullOr(Schema.String),
    description: Schema.String,
    /** The key that it is about, if the recipient is its user. */
    keyId: Schema.NullOr(Schema.String),
    isObsolete: Schema.Boolean
  })
)

/**
 * The mail server did not accept the message; it is retried. The server's own text, which may contain addresses of people,
 * is only in the log.
 */
class MailRefused extends Data.TaggedError("MailRefused")<{ readonly message: string }> {}

const refused = ({ cause }: MailFailed) => {
  const codes = ["code", "responseCode"].flatMap((name) => (Predicate.hasProperty(cause, name) ? [String(cause[name])] : []))
  return new MailRefused({ message: `the mail server rejected the message (${codes.join(", ")})` })
}

export class Notices extends Effect.Service<Notices>()("custody/Notices", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { portalBaseUrl } = yield* Settings
    const { send } = yield* Mailer

    return {
      /** Sends an unsent notice; returns how, `smtp` or `log`. */
      send: (noticeId: string) =>
        Effect.gen(function* () {
          // Read with an UPDATE that changes nothing, which fails if recording the sending would.
          const [notice] = yield* decodeNotices(sql`
            UPDATE notices n SET recipient = recipient WHERE id = ${noticeId}
            RETURNING recipient, subject, body, channel, webhook_id AS "webhookId",
              coalesce((SELECT w.description FROM webhooks w WHERE w.id = n.webhook_id), '') AS description,
              (SELECT k.id FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id = n.key_id AND lower(u.email) = lower(n.recipient)) AS "keyId",
              n.key_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM api_keys k WHERE k.id = n.key_id AND k.revoked_at IS NULL
                AND k.expires_at = n.key_expires_at AND k.expires_at > now()) AS "isObsolete"`)
          if (notice === undefined) return { channel: "none" }
          if (notice.channel !== null) return { channel: notice.channel }
          if (notice.isObsolete) {
            yield* sql`DELETE FROM notices WHERE id = ${noticeId} AND sent_at IS NULL`
            return { channel: "none" }
          }
          const channel = send === undefined ? "log" : "smtp"
          if (send === undefined) {
            yield* Effect.logWarning(notice.subject).pipe(Effect.annotateLogs({ noticeId, webhookId: notice.webhookId }))
          } else {
            const mail = { to: notice.recipient, ...messageOf(notice, portalBaseUrl), messageId: `${noticeId}@custody-data-service` }
            yield* send(mail).pipe(
              Effect.tapError(({ cause }) =>
                Effect.logWarning("a notice could not be sent and will be retried", cause).pipe(Effect.annotateLogs({ noticeId }))
              ),
              Effect.mapError(refused)
            )
          }
          failpoint("notice-sent")
          yield* whileUnavailable("500 millis")(
            sql`UPDATE notices SET sent_at = now(), channel = ${channel} WHERE id = ${noticeId} AND sent_at IS NULL`
          )
          return { channel }
        })
    }
  })
}) {
  static readonly layer = Layer.provide(this.Default, Mailer.layer)
}
