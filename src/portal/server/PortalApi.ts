/**
 * The contract of the portal's own routes, beside those of the API: what each takes and what it returns. The server implements
 * it, and the types of the pages' requests are derived from it (web/portalRoutes.ts). Bodies are read by their handlers, so that
 * a request without a session is refused first.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON
} from "@simplewebauthn/browser"
import { Schema } from "effect"
import { ApiKey } from "../../access/keys/ApiKeys.ts"
import { NamedKey } from "../../access/keys/KeysRepo.ts"
import { Credential } from "../../access/visibility/CredentialApi.ts"
import type { ReceivedEvent } from "../../client/receivedEvent.ts"
import { SealedDays } from "../../custody/statements/StatementsRepo.ts"
import { PreparedRequest } from "../../delivery/deliveries/RequestPreview.ts"
import { Health } from "../../delivery/webhooks/Webhook.ts"
import { names } from "../../events/log/Kind.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { Flag, query } from "../../http/Parameters.ts"
import { Problem } from "../../http/Problem.ts"
import { GivenId } from "../../values/givenId.ts"
import { TimestampParam } from "../../values/Timestamp.ts"
import { Confirmation, text } from "../signIn/confirmation.ts"
import { Member } from "../signIn/Members.ts"
import { Passkey } from "../signIn/Passkeys.ts"
import { PASSWORD_MAX, PASSWORD_MIN } from "../signIn/passwordRules.ts"
import { Enrolment } from "../signIn/SecondFactor.ts"
import { ListedSession } from "../signIn/Sessions.ts"
import { AssetName, AuditName, EventCounts, Traffic, VisibleNames } from "./Overview.ts"
import { PATH } from "./origin.ts"
import { SearchResult } from "./Search.ts"

/** JSON whose form a library or another contract defines. */
const json = <A>() => Schema.declare((_): _ is A => true)
const listed = <A, I>(row: Schema.Schema<A, I>) => Schema.Struct({ data: Schema.Array(row) })
const byId = <A, I>(value: Schema.Schema<A, I>) => Schema.Record({ key: Schema.String, value })

/** The response to a change. */
const Done = Schema.Struct({ done: Schema.Literal(true) })
export const done = { done: true } as const

const User = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  email: Schema.String,
  organization: Schema.Struct({ id: Schema.String, name: Schema.String }),
  isOwner: Schema.Boolean,
  hasPassword: Schema.Boolean
})
export type User = typeof User.Type

/** The state of the browser's session: who is signed in, and which step is missing. */
const SessionStatus = Schema.Struct({
  state: Schema.Literal("signed_out", "enrolment", "second_factor", "signed_in"),
  user: Schema.NullOr(User),
  /** The identity provider's name, null without one. */
  provider: Schema.NullOr(Schema.String),
  passwordMin: Schema.Number,
  /** Whether the service resets passwords by e-mail. */
  resetsPasswords: Schema.Boolean
})
export type SessionStatus = typeof SessionStatus.Type

/** The content of an invitation. */
const InvitationSummary = Schema.Struct({
  name: Schema.String,
  email: Schema.String,
  organizationName: Schema.String,
  /** Whether it resets an existing account. */
  reset: Schema.Boolean,
  expiresAt: Schema.String
})
export type InvitationSummary = typeof InvitationSummary.Type

/** The account of a link for a new password. */
const PasswordResetSummary = Schema.Struct({ email: Schema.String, expiresAt: Schema.String })

/** Options for the browser's authenticator: to sign in, or to confirm. */
const PasskeyOptions = Schema.Struct({ challengeId: Schema.String, options: json<PublicKeyCredentialRequestOptionsJSON>() })

/** What the user can see, and the service's names and limits. */
export const PortalContext = Schema.Struct({
  ...VisibleNames.fields,
  scopes: Schema.Array(Schema.String),
  kinds: Schema.Array(
    Schema.Struct({
      name: Schema.Literal(...names),
      when: Schema.String,
      scope: Schema.Literal("vault", "entity"),
      schemaVersion: Schema.Number
    })
  ),
  deliveryStatuses: Schema.Array(Schema.String),
  activePerEntity: Schema.Number,
  liveSecrets: Schema.Number,
  rotationGraceSeconds: Schema.Number,
  retentionDays: Schema.Number,
  /** Allowed ports of webhook URLs. */
  webhookPorts: Schema.Array(Schema.Number),
  /** CIDRs from which deliveries come; empty if the operator names none. */
  webhookSourceAddresses: Schema.Array(Schema.String),
  /** Whether the service can send e-mail. */
  sendsMail: Schema.Boolean,
  /** Pages of block explorers by network, with `{hash}` and `{address}` in them. */
  explorers: byId(Schema.Struct({ transaction: Schema.String, address: Schema.String }))
})
export type PortalContext = typeof PortalContext.Type

const NewPassword = text(PASSWORD_MAX).pipe(
  Schema.filter((value) => value.length >= PASSWORD_MIN || `must have at least ${PASSWORD_MIN} characters`)
)

/** `ApiKeys` validates their content. In the portal, each key has a label, by which people recognize it later. */
const keyFields = {
  label: Schema.String.pipe(Schema.filter((label) => label.trim() !== "" || "must say what the key is for")),
  scopes: Schema.Array(Schema.String),
  /** null allows every vault on which the user has the Developer role. */
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)),
  ipAllowlist: Schema.Array(Schema.String),
  /** null means no expiry. */
  expiresAt: Schema.NullOr(TimestampParam)
}

/** The bodies of requests. */
export const bodies = {
  // An empty password cannot be hashed, so its response would tell an account from none.
  credentials: Schema.Struct({ email: text(320), password: text(1_000).pipe(Schema.minLength(1)) }),
  address: Schema.Struct({ email: text(320) }),
  /** Decoded by `Passkeys`, which rejects an invalid response like a wrong one. */
  passkeyResponse: json<{ readonly challengeId: string; readonly response: AuthenticationResponseJSON }>(),
  code: Schema.Struct({ code: text(40) }),
  token: Schema.Struct({ token: text(100) }),
  acceptance: Schema.Struct({ token: text(100), password: Schema.NullOr(NewPassword) }),
  passwordReset: Schema.Struct({ token: text(100), password: NewPassword }),
  keyCreation: Schema.Struct({ ...keyFields, expiresAt: Schema.optional(keyFields.expiresAt), confirmation: Confirmation }),
  keyEdit: Schema.partialWith(Schema.Struct({ ...keyFields, confirmation: Confirmation }), { exact: true }),
  passwordChange: Schema.Struct({ current: text(1_000), next: NewPassword, confirmation: Confirmation }),
  confirmed: Schema.Struct({ confirmation: Confirmation }),
  namedPasskey: Schema.Struct({ name: text(100), answer: Schema.Unknown })
} as const

const id = HttpApiSchema.param("id", GivenId)
const parameter = Schema.optional(Schema.String)
/** Comma-separated ids. */
const ids = Schema.Struct({ ids: parameter })

const signIn = HttpApiGroup.make("signIn")
  .add(HttpApiEndpoint.get("getSession", "/session").addSuccess(SessionStatus))
  .add(HttpApiEndpoint.post("signIn", "/sign-in").setPayload(bodies.credentials).addSuccess(Done))
  .add(HttpApiEndpoint.post("passkeyOptions", "/sign-in/passkey/options").addSuccess(PasskeyOptions))
  .add(HttpApiEndpoint.post("signInWithPasskey", "/sign-in/passkey").setPayload(bodies.passkeyResponse).addSuccess(Done))
  .add(HttpApiEndpoint.post("signInAtProvider", "/sign-in/provider").addSuccess(Schema.Struct({ url: Schema.String })))
  // The identity provider sends the browser here.
  .add(HttpApiEndpoint.get("providerCallback", "/auth/callback/oidc"))
  .add(HttpApiEndpoint.post("giveSecondFactor", "/sign-in/second-factor").setPayload(bodies.code).addSuccess(Done))
  .add(HttpApiEndpoint.post("getInvitation", "/invitation").setPayload(bodies.token).addSuccess(InvitationSummary))
  .add(HttpApiEndpoint.post("acceptInvitation", "/invitation/accept").setPayload(bodies.acceptance).addSuccess(Done))
  .add(HttpApiEndpoint.post("requestPasswordReset", "/password-reset/request").setPayload(bodies.address).addSuccess(Done))
  .add(HttpApiEndpoint.post("getPasswordReset", "/password-reset").setPayload(bodies.token).addSuccess(PasswordResetSummary))
  .add(HttpApiEndpoint.post("resetPassword", "/password-reset/confirm").setPayload(bodies.passwordReset).addSuccess(Done))
  .add(HttpApiEndpoint.post("beginEnrolment", "/enrolment").addSuccess(Enrolment))
  .add(HttpApiEndpoint.post("confirmEnrolment", "/enrolment/confirm").setPayload(bodies.code).addSuccess(Done))
  .add(HttpApiEndpoint.post("signOut", "/sign-out").addSuccess(Done))

const NamedKeyPage = Page(NamedKey, "NamedKeyPage")
const keys = HttpApiGroup.make("keys")
  .add(
    HttpApiEndpoint.get("listKeys", "/keys")
      .setUrlParams(query({ ...PageParams, revoked: Schema.optionalWith(Flag, { default: () => false }) }))
      .addSuccess(NamedKeyPage)
  )
  // For owners.
  .add(HttpApiEndpoint.get("listOthersKeys", "/keys-of-others").setUrlParams(query(PageParams)).addSuccess(NamedKeyPage))
  .add(HttpApiEndpoint.get("getKey")`/keys/${id}`.addSuccess(ApiKey))
  .add(
    HttpApiEndpoint.post("createKey", "/keys")
      .setPayload(bodies.keyCreation)
      .addSuccess(Schema.Struct({ ...ApiKey.fields, secret: Schema.String }))
  )
  .add(HttpApiEndpoint.patch("updateKey")`/keys/${id}`.setPayload(bodies.keyEdit).addSuccess(ApiKey))
  // What the key can see, and why it cannot see a vault: the response that the key itself would get. C-7.
  .add(
    HttpApiEndpoint.get("getKeyCredential")`/keys/${id}/credential`
      .setUrlParams(Schema.Struct({ vaultId: parameter }))
      .addSuccess(Credential)
  )
  .add(HttpApiEndpoint.post("revokeKey")`/keys/${id}/revoke`.addSuccess(ApiKey))

/** The organization's users, for its owners. */
const members = HttpApiGroup.make("members")
  .add(HttpApiEndpoint.get("listMembers", "/members").setUrlParams(query(PageParams)).addSuccess(Page(Member, "MemberPage")))
  .add(HttpApiEndpoint.post("inviteMember")`/members/${id}/invite`.addSuccess(Schema.Struct({ expiresAt: Schema.String })))
  .add(HttpApiEndpoint.post("endMemberSessions")`/members/${id}/end-sessions`.addSuccess(Done))

const account = HttpApiGroup.make("account")
  .add(HttpApiEndpoint.get("listSessions", "/sessions").addSuccess(listed(ListedSession)))
  .add(HttpApiEndpoint.del("endSession")`/sessions/${id}`.addSuccess(Done))
  .add(HttpApiEndpoint.post("endOtherSessions", "/sessions/end-others").addSuccess(Done))
  .add(HttpApiEndpoint.post("endAllSessions", "/sessions/end-all").addSuccess(Done))
  .add(HttpApiEndpoint.post("changePassword", "/password").setPayload(bodies.passwordChange).addSuccess(Done))
  .add(HttpApiEndpoint.get("countBackupCodes", "/backup-codes").addSuccess(Schema.Struct({ left: Schema.Number })))
  .add(
    HttpApiEndpoint.post("renewBackupCodes", "/backup-codes")
      .setPayload(bodies.confirmed)
      .addSuccess(Schema.Struct({ backupCodes: Schema.Array(Schema.String) }))
  )
  .add(HttpApiEndpoint.get("listPasskeys", "/passkeys").addSuccess(listed(Passkey)))
  .add(
    HttpApiEndpoint.post("newPasskeyOptions", "/passkeys/options")
      .setPayload(bodies.confirmed)
      .addSuccess(Schema.Struct({ challengeId: Schema.String, options: json<PublicKeyCredentialCreationOptionsJSON>() }))
  )
  .add(HttpApiEndpoint.post("addPasskey", "/passkeys").setPayload(bodies.namedPasskey).addSuccess(Done))
  .add(HttpApiEndpoint.del("removePasskey")`/passkeys/${id}`.addSuccess(Done))
  .add(HttpApiEndpoint.post("confirmationOptions", "/confirmation/passkey").addSuccess(PasskeyOptions))

const overview = HttpApiGroup.make("overview")
  .add(HttpApiEndpoint.get("getContext", "/context").addSuccess(PortalContext))
  .add(HttpApiEndpoint.get("getEventCounts", "/event-counts").setUrlParams(ids).addSuccess(byId(EventCounts)))
  .add(HttpApiEndpoint.get("getWebhookHealth", "/webhook-health").setUrlParams(ids).addSuccess(byId(Health)))
  .add(
    HttpApiEndpoint.get("getWebhookTraffic", "/webhook-traffic")
      .setUrlParams(Schema.Struct({ ids: parameter, span: parameter }))
      .addSuccess(byId(Traffic))
  )
  // A sample of the kind's events and their published schema, both as JSON text.
  .add(
    HttpApiEndpoint.get("getEventKind")`/event-kinds/${HttpApiSchema.param("kind", Schema.String)}`.addSuccess(
      Schema.Struct({ sample: Schema.String, schema: Schema.String })
    )
  )
  .add(HttpApiEndpoint.get("getEventData", "/event-data").setUrlParams(ids).addSuccess(byId(json<ReceivedEvent["data"]>())))
  .add(HttpApiEndpoint.get("getAuditNames", "/audit-names").setUrlParams(ids).addSuccess(byId(AuditName)))
  .add(HttpApiEndpoint.get("getAssetNames", "/asset-names").setUrlParams(ids).addSuccess(byId(AssetName)))
  .add(HttpApiEndpoint.get("getStatementDays")`/vaults/${id}/statement-days`.addSuccess(SealedDays))
  .add(
    HttpApiEndpoint.get("search", "/search")
      .setUrlParams(Schema.Struct({ q: parameter }))
      .addSuccess(SearchResult)
  )
  .add(
    HttpApiEndpoint.get("countMissed")`/webhooks/${id}/missed`
      .setUrlParams(Schema.Struct({ hours: parameter }))
      // Events that a webhook missed since a time, counted up to `countedUpTo`; `isAll`: no earlier ones were left out.
      .addSuccess(Schema.Struct({ since: Schema.String, count: Schema.Number, countedUpTo: Schema.Number, isAll: Schema.Boolean }))
  )
  // The exact text of an event's envelope.
  .add(HttpApiEndpoint.get("getPayload")`/events/${id}/payload`)
  .add(HttpApiEndpoint.post("retryWaiting")`/webhooks/${id}/retry-waiting`.addSuccess(Done))
  .add(HttpApiEndpoint.post("cancelWaiting")`/webhooks/${id}/cancel-waiting`.addSuccess(Done))
  .add(HttpApiEndpoint.post("retryNow")`/deliveries/${id}/retry-now`.addSuccess(Done))
  .add(HttpApiEndpoint.post("cancelDelivery")`/deliveries/${id}/cancel`.addSuccess(Done))
  .add(HttpApiEndpoint.post("previewRequest")`/deliveries/${id}/request-preview`.addSuccess(PreparedRequest))

/** Where the portal's routes are. */
export const API = `${PATH}/api` as const

export class PortalApi extends HttpApi.make("portal")
  .add(signIn)
  .add(keys)
  .add(members)
  .add(account)
  .add(overview)
  .prefix(API)
  // The error boundary writes the problem before the framework would encode it.
  .addError(Schema.declare((value): value is Problem => value instanceof Problem)) {}

type Endpoints = HttpApiGroup.HttpApiGroup.Endpoints<typeof signIn | typeof keys | typeof members | typeof account | typeof overview>
type Named<Name extends string> = HttpApiEndpoint.HttpApiEndpoint.WithName<Endpoints, Name>

/** The body that a route takes, if it takes one, and what it returns, by the name of its endpoint. */
export type Route<Name extends string> = { answer: HttpApiEndpoint.HttpApiEndpoint.Success<Named<Name>> } & ([
  HttpApiEndpoint.HttpApiEndpoint.Payload<Named<Name>>
] extends [never]
  ? unknown
  : { body: HttpApiEndpoint.HttpApiEndpoint.Payload<Named<Name>> })
