/**
 * Sending operational notices by e-mail. The notice is a row before it is a message; sending is a durable step of its
 * own, tried until it works, and the message's id is the notice's, so that a mail server drops what a crash between
 * sending and recording would send again. Without SMTP_URL a notice is logged. Decision D-23.
 */
import { SqlClient } from "@effect/sql"
import { Data, Effect, Redacted } from "effect"
import { createTransport } from "nodemailer"
import { Settings } from "../settings/Settings.ts"

/** The mail server did not take the message; it is tried again. */
export class MailRefused extends Data.TaggedError("MailRefused")<{ readonly message: string }> {}

export class Notices extends Effect.Service<Notices>()("custody/Notices", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { noticeFrom, smtpUrl } = yield* Settings
    const transport =
      smtpUrl === undefined
        ? undefined
        : createTransport({ url: Redacted.value(smtpUrl), connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 })
    if (transport !== undefined) yield* Effect.addFinalizer(() => Effect.sync(() => transport.close()))

    return {
      /** Sends a notice that was not sent yet; returns how, `smtp` or `log`. */
      send: (noticeId: string) =>
        Effect.gen(function* () {
          const [notice] = yield* sql<{ recipient: string; subject: string; body: string; channel: string | null; webhookId: string }>`
            SELECT recipient, subject, body, channel, webhook_id AS "webhookId" FROM notices WHERE id = ${noticeId}`
          if (notice === undefined) return { channel: "none" }
          if (notice.channel !== null) return { channel: notice.channel }
          const channel = transport === undefined ? "log" : "smtp"
          if (transport === undefined) {
            yield* Effect.logWarning(notice.subject).pipe(Effect.annotateLogs({ noticeId, webhookId: notice.webhookId }))
          } else {
            const { body, recipient, subject } = notice
            yield* Effect.tryPromise({
              try: () =>
                transport.sendMail({
                  from: noticeFrom,
                  to: recipient,
                  subject,
                  text: body,
                  messageId: `<${noticeId}@custody-data-service>`
                }),
              catch: (error) => new MailRefused({ message: error instanceof Error ? error.message : String(error) })
            })
          }
          // failpoint: notice-sent
          yield* sql`UPDATE notices SET sent_at = now(), channel = ${channel} WHERE id = ${noticeId} AND sent_at IS NULL`
          return { channel }
        }),

      /** Notices that were recorded a while ago and not sent: their workflows may be lost. Those of more than three days are given up. */
      unsent: sql<{ id: string }>`
        SELECT id FROM notices WHERE sent_at IS NULL AND created_at BETWEEN now() - interval '3 days' AND now() - interval '1 minute'
        ORDER BY created_at LIMIT 100`
    }
  })
}) {
  static readonly layer = this.Default
}
