/**
 * The portal's routes for the signed-in user's own API keys, with the same service as the command line. Creating a key,
 * or giving it more access, requires the second factor in the same request. Owners also see and revoke the keys of others in
 * their organization. Spec: Authentication 2 to 9. Decision D-44.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Duration, Effect, Redacted } from "effect"
import { actorOf } from "../../access/audit/AuditTrail.ts"
import { ApiKeys, DEFAULT_EXPIRY, InvalidKey, UnknownKey } from "../../access/keys/ApiKeys.ts"
import { KeysRepo, keyJson } from "../../access/keys/KeysRepo.ts"
import { CredentialRepo } from "../../access/visibility/CredentialRepo.ts"
import * as Body from "../../http/Body.ts"
import { answerJson, type Key, type Of, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { isStorable } from "../../values/givenId.ts"
import { confirm } from "../signIn/confirmSecondFactor.ts"
import { inTurn, principalOf, type SessionState, Sessions, withBody } from "../signIn/Sessions.ts"
import { bodies, PortalApi } from "./PortalApi.ts"

/** Invalid properties and unknown keys as the API reports them. */
const toProblems = <A, E, R>(self: Effect.Effect<A, E | InvalidKey | UnknownKey, R>) =>
  Effect.catchAll(
    self,
    (error): Effect.Effect<never, E | Body.BodyProblem | ReturnType<typeof notFound>> =>
      error instanceof InvalidKey
        ? Effect.fail(Body.invalidFields([Body.fieldIssue(error.field, error.message)]))
        : error instanceof UnknownKey
          ? Effect.fail(notFound())
          : Effect.fail(error)
  )

/** One of the user's own keys; another user's key gets the same response as an unknown one. */
const own = (userId: string, id: string) =>
  Effect.gen(function* () {
    const keys = yield* ApiKeys
    const found = yield* keys.ofUser(userId, id)
    return found === undefined ? yield* notFound() : found
  })

/** The id of a key that the user may revoke: one of their own; for an owner, any of the organization. */
const revocable = ({ isOwner, organizationId, userId }: SessionState, id: string) =>
  Effect.gen(function* () {
    if (!isOwner) return (yield* own(userId, id)).id
    return (yield* (yield* ApiKeys).isOfOrganization(organizationId, id)) ? id : yield* notFound()
  })

/** A page of keys as a response. */
const keyPage = (
  of: Of,
  { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
  fetch: (keys: KeysRepo, after: Key | null, take: number) => ReturnType<KeysRepo["ofUser"]>
) =>
  Effect.gen(function* () {
    const keys = yield* KeysRepo
    const page = yield* (yield* Pages).cut({
      of,
      limit,
      cursor,
      keyLength: 2,
      fetch: (after, take) => fetch(keys, after, take),
      keyOf: ({ createdAt, id }) => [createdAt, id]
    })
    return answerJson(page, keyJson)
  })

export const layer = HttpApiBuilder.group(PortalApi, "keys", (handlers) =>
  handlers
    .handleRaw("listKeys", ({ urlParams: { revoked, ...params } }) =>
      inTurn("complete", ({ userId }) =>
        keyPage({ list: "keys", path: [userId], filters: { revoked } }, params, (keys, after, take) =>
          keys.ofUser(userId, revoked, after, take)
        )
      )
    )
    .handleRaw("listOthersKeys", ({ urlParams }) =>
      inTurn("owner", (session) =>
        keyPage({ list: "keys-of-others", path: [session.userId] }, urlParams, (keys, after, take) => keys.ofOthers(session, after, take))
      )
    )
    .handle("getKey", ({ path }) => inTurn("complete", ({ userId }) => own(userId, path.id)))
    .handleRaw("createKey", () =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("complete", bodies.keyCreation)
        const { userId } = session
        const { confirmation, expiresAt, ...choice } = body
        const keys = yield* ApiKeys
        const until = expiresAt === undefined ? new Date(Date.now() + Duration.toMillis(DEFAULT_EXPIRY)).toISOString() : expiresAt
        // Invalid properties are reported before a code is used up.
        yield* keys.check(userId, { ...choice, expiresAt: until })
        yield* confirm(session, confirmation)
        const allowed = (yield* Sessions).stillThere(session)
        const { key, secret } = yield* keys.create(userId, { ...choice, expiresAt: until }, actorOf(principalOf(session)), allowed)
        yield* Effect.logInfo("portal: a key was created").pipe(Effect.annotateLogs({ userId, keyId: key.id }))
        return { ...key, secret: Redacted.value(secret) }
      }).pipe(toProblems)
    )
    .handleRaw("updateKey", ({ path }) =>
      Effect.gen(function* () {
        const { body, session } = yield* withBody("complete", bodies.keyEdit)
        const { userId } = session
        const { id } = yield* own(userId, path.id)
        const { confirmation = {}, ...change } = body
        const keys = yield* ApiKeys
        const by = actorOf(principalOf(session))
        // Tried without the factor first: an invalid edit, or one that needs no confirmation, uses up no code.
        const key = yield* keys
          .update(id, change, { mayWiden: false }, by)
          .pipe(
            Effect.catchTag("WidensKey", () =>
              Effect.zipRight(
                confirm(session, confirmation),
                Effect.catchTag(keys.update(id, change, { mayWiden: true }, by), "WidensKey", Effect.die)
              )
            )
          )
        yield* Effect.logInfo("portal: a key was edited").pipe(Effect.annotateLogs({ userId, keyId: id }))
        return key
      }).pipe(toProblems)
    )
    // What the key can see, and why it cannot see a vault: the response that the key itself would get. C-7.
    .handle("getKeyCredential", ({ path, urlParams: { vaultId } }) =>
      inTurn("complete", (session) =>
        Effect.gen(function* () {
          const { id } = yield* own(session.userId, path.id)
          const { client } = yield* currentRequest
          // Like the API, text that Postgres cannot store names no vault.
          const asked = vaultId === undefined || vaultId === "" ? undefined : isStorable(vaultId) ? vaultId : ""
          const found = yield* (yield* CredentialRepo).of(id, principalOf(session), client?.toString() ?? null, asked)
          return found === undefined ? yield* notFound() : found
        }).pipe(toProblems)
      )
    )
    .handle("revokeKey", ({ path }) =>
      Effect.gen(function* () {
        const session = yield* (yield* Sessions).complete
        const id = yield* revocable(session, path.id)
        const key = yield* (yield* ApiKeys).revoke(id, actorOf(principalOf(session)))
        yield* Effect.logInfo("portal: a key was revoked").pipe(Effect.annotateLogs({ userId: session.userId, keyId: id }))
        return key
      }).pipe(toProblems)
    )
)
