/**
 * Sending operational notices by e-mail. The notice is a row before it is a message; sending is a durable step of its
 * own, tried until it works. Nothing is sent while the row cannot be written, and what was sent is recorded for as long
 * as that takes; the message's id is the notice's, so that a mail server can drop what a crash between sending and
 * recording would send again. Without SMTP_URL a notice is logged. Decision D-23.
 */
import { SqlClient } from "@effect/sql"
import { Data, Effect, Predicate, Redacted } from "effect"
import { createTransport } from "nodemailer"
import { whileUnavailable } from "../database/unavailable.ts"
import { Settings } from "../settings/Settings.ts"

/** Days for which a notice is kept, and tried until it is sent. The workflow's step has as long (workflows/notify.ts). */
export const NOTICE_DAYS = 31

/** Notices that are looked for at once. */
export const PAGE = 500

/** The mail server did not take the message; it is tried again. Its own words, which may name people, are in the log only. */
export class MailRefused extends Data.TaggedError("MailRefused")<{ readonly message: string }> {}

const refused = (error: unknown) => {
  const codes = ["code", "responseCode"].flatMap((name) => (Predicate.hasProperty(error, name) ? [String(error[name])] : []))
  return new MailRefused({ message: `the mail server rejected the message (${codes.join(", ")})` })
}

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
          // Read by a change that changes nothing, which fails where the record of the sending would.
          const [notice] = yield* sql<{ recipient: string; subject: string; body: string; channel: string | null; webhookId: string }>`
            UPDATE notices SET recipient = recipient WHERE id = ${noticeId}
            RETURNING recipient, subject, body, channel, webhook_id AS "webhookId"`
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
              catch: (error) => error
            }).pipe(
              Effect.tapError((error) =>
                Effect.logWarning("a notice could not be sent and is retried", error).pipe(Effect.annotateLogs({ noticeId }))
              ),
              Effect.mapError(refused)
            )
          }
          // failpoint: notice-sent
          yield* whileUnavailable("500 millis")(
            sql`UPDATE notices SET sent_at = now(), channel = ${channel} WHERE id = ${noticeId} AND sent_at IS NULL`
          )
          return { channel }
        }),

      /**
       * Notices after one of them that were recorded a while ago and not sent, in parts of {@link PAGE}: their workflows may be
       * lost. A notice is given up when retention removes it.
       */
      unsent: (after: string) => sql<{ id: string }>`
        SELECT id FROM notices WHERE sent_at IS NULL AND created_at BETWEEN now() - make_interval(days => ${NOTICE_DAYS}) AND now() - interval '1 minute'
          AND id > ${after} ORDER BY id LIMIT ${PAGE}`
    }
  })
}) {
  static readonly layer = this.Default
}
