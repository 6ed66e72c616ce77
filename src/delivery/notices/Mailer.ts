/** Sends e-mail through the configured mail server, whose library is loaded with the first message. */
import { Data, Effect, Redacted, Scope } from "effect"
import { Settings } from "../../runtime/settings/Settings.ts"
import type { Message } from "./message.ts"

/** The message was not accepted. Only the log may contain the cause, which can name addresses of people. */
export class MailFailed extends Data.TaggedError("MailFailed")<{ readonly cause: unknown }> {}

/** A message with its recipient. */
export interface Mail extends Message {
  readonly to: string
  /** Without angle brackets; a mail server can drop another message with the same id. */
  readonly messageId: string
}

export class Mailer extends Effect.Service<Mailer>()("custody/Mailer", {
  scoped: Effect.gen(function* () {
    const { noticeFrom, smtpUrl } = yield* Settings
    const connect = (url: Redacted.Redacted) =>
      Effect.acquireRelease(
        Effect.map(
          Effect.promise(() => import("nodemailer")),
          ({ createTransport }) =>
            createTransport({ url: Redacted.value(url), connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 })
        ),
        (opened) => Effect.sync(() => opened.close())
      )
    const scope = yield* Effect.scope
    const transport = smtpUrl === undefined ? undefined : yield* Effect.cached(Scope.extend(connect(smtpUrl), scope))
    const send =
      transport &&
      (({ messageId, to, ...message }: Mail): Effect.Effect<void, MailFailed> =>
        Effect.flatMap(transport, (opened) =>
          Effect.tryPromise({
            // One address: as text, it could be a list.
            try: () => opened.sendMail({ ...message, from: noticeFrom, to: { name: "", address: to }, messageId: `<${messageId}>` }),
            catch: (cause) => new MailFailed({ cause })
          })
        ))
    return {
      /** Sends a message; undefined without `SMTP_URL`. */
      send
    }
  })
}) {
  static readonly layer = this.Default
}
