/** The portal's routes for the organization's users, for its owners. A user of another organization is as absent as none. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Redacted } from "effect"
import { Mailer, MailFailed } from "../../delivery/notices/Mailer.ts"
import { letterOf } from "../../delivery/notices/message.ts"
import { minuteOf } from "../../delivery/notices/noticeTexts.ts"
import { answer, Pages } from "../../http/Page.ts"
import { notFound, problem } from "../../http/Problem.ts"
import * as Id from "../../values/Id.ts"
import { PATH, requireOrigin } from "../server/origin.ts"
import { done, PortalApi } from "../server/PortalApi.ts"
import { type Invitation, Invitations, VALIDITY } from "./Invitations.ts"
import { Members } from "./Members.ts"
import { inTurn, Sessions, sessionActor } from "./Sessions.ts"
import { tooMany } from "./tooMany.ts"

/** Shortest time between two invitations of a user, in seconds: each is an e-mail. */
const AGAIN_S = 60
/** Longest time for the mail server, shorter than the listener's for a response. */
const SENDING = "20 seconds"

const member = (organizationId: string, id: string) =>
  Effect.gen(function* () {
    return (yield* (yield* Members).find(organizationId, id)) ?? (yield* notFound())
  })

const refused = (detail: string) => problem("invitation_refused", detail)

/** The e-mail to an invited person. The token follows the #, which browsers do not send. */
const letter = (organizationName: string, { expiresAt, name, token }: Invitation, origin: string) =>
  letterOf(
    {
      subject: `Your invitation to the custody portal of ${organizationName}`,
      body:
        `Hello ${name},\n\nan owner of ${organizationName} invites you to the custody portal, where you create API keys, manage ` +
        `webhooks and read your vaults. You choose a password and set up a second factor.\n\n` +
        `The link works once, until ${minuteOf(expiresAt)}. Do not pass it on.\n`
    },
    { href: `${origin}${PATH}/invitation#${Redacted.value(token)}`, title: "Accept the invitation", button: "Accept the invitation" }
  )

export const layer = HttpApiBuilder.group(PortalApi, "members", (handlers) =>
  handlers
    .handle("listMembers", ({ urlParams: { cursor, limit } }) =>
      inTurn("owner", ({ organizationId }) =>
        Effect.gen(function* () {
          const members = yield* Members
          const page = yield* (yield* Pages).cut({
            of: { list: "members", path: [organizationId] },
            limit,
            cursor,
            keyLength: 1,
            fetch: (after, take) => members.list(organizationId, after, take),
            keyOf: ({ id }) => [id]
          })
          return answer(page, (one) => one)
        })
      )
    )
    .handle("inviteMember", ({ path }) =>
      Effect.gen(function* () {
        const session = yield* (yield* Sessions).owner
        const { hasAccount, id, isActive, name } = yield* member(session.organizationId, path.id)
        const { send } = yield* Mailer
        if (send === undefined) return yield* refused("The service has no mail server. Ask its operator to invite this person.")
        if (!isActive) return yield* refused(`${name} is deactivated.`)
        if (hasAccount) return yield* refused(`${name} already has an account. To reset it, ask the operator of the service.`)
        const origin = yield* requireOrigin
        const invitation = yield* (yield* Invitations)
          .create(id, { reset: false, validity: VALIDITY, againS: AGAIN_S }, sessionActor(session))
          .pipe(
            Effect.catchTag("SqlError", Effect.die),
            Effect.catchTag("InvalidInvitation", ({ message, waitS }) =>
              Effect.gen(function* () {
                if (waitS !== undefined) return yield* tooMany(`${name} was just invited.`, waitS)
                yield* Effect.logWarning(`portal: an invitation was refused: ${message}`)
                return yield* refused("This person cannot be invited. Ask the operator of the service.")
              })
            )
          )
        const mail = letter(session.organizationName, invitation, origin)
        yield* send({ ...mail, to: invitation.email, messageId: `${Id.make("inv")}@custody-data-service` }).pipe(
          Effect.timeoutFail({ duration: SENDING, onTimeout: () => new MailFailed({ cause: `no answer within ${SENDING}` }) }),
          Effect.tapError(({ cause }) => Effect.logWarning("portal: an invitation could not be sent", cause)),
          Effect.mapError(() =>
            problem("service_unavailable", "The mail server did not accept the e-mail. Try again in a minute.", {
              headers: { "retry-after": String(AGAIN_S) }
            })
          )
        )
        yield* Effect.logInfo("portal: a member was invited").pipe(Effect.annotateLogs({ userId: session.userId, invitedId: id }))
        return { expiresAt: invitation.expiresAt }
      })
    )
    .handle("endMemberSessions", ({ path }) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const session = yield* sessions.owner
        const { id } = yield* member(session.organizationId, path.id)
        yield* sessions.endOfMember(session, id)
        yield* Effect.logInfo("portal: a member's sessions were ended").pipe(Effect.annotateLogs({ userId: session.userId, endedId: id }))
        return done
      })
    )
)
