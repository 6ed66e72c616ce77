/**
 * The portal's own routes, beside those of the API: the body that each takes and the JSON that it returns. The routes of
 * the server and the requests of the pages are both checked against this. Types only: nothing of it is sent to browsers.
 */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON
} from "@simplewebauthn/browser"
import type { ApiKey } from "../../access/keys/ApiKeys.ts"
import type { Credential } from "../../access/visibility/CredentialApi.ts"
import type { EventKind } from "../../client/generated/webhooks.ts"
import type { ReceivedEvent } from "../../client/receivedEvent.ts"
import type { PreparedRequest } from "../../delivery/deliveries/RequestPreview.ts"
import type { Health } from "../../delivery/webhooks/Webhook.ts"
import type { Explorer } from "../../runtime/settings/portalLook.ts"
import type { Passkey } from "../signIn/Passkeys.ts"
import type { ListedSession } from "../signIn/Sessions.ts"
import type * as bodies from "./bodies.ts"
import type { AssetName, EventCounts, Traffic, VisibleNames } from "./Overview.ts"
import type { Found } from "./Search.ts"

type Sent<S extends { readonly Encoded: unknown }> = S["Encoded"]
type Listed<A> = { readonly data: ReadonlyArray<A> }
type ById<A> = Readonly<Record<string, A>>

/** The response to a change. */
export interface Done {
  readonly done: true
}

/** The state of the browser's session: who is signed in, and which step is missing. */
export interface SessionStatus {
  readonly state: "signed_out" | "enrolment" | "second_factor" | "signed_in"
  readonly user: User | null
  /** The identity provider's name, null without one. */
  readonly provider: string | null
  readonly passwordMin: number
}

export interface User {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly organization: { readonly id: string; readonly name: string }
  readonly isOwner: boolean
  readonly hasPassword: boolean
}

/** The content of an invitation. */
export interface InvitationSummary {
  readonly name: string
  readonly email: string
  readonly organizationName: string
  /** Whether it resets an existing account. */
  readonly reset: boolean
  readonly expiresAt: string
}

/** Options for the browser's authenticator: to sign in, or to confirm. */
export interface PasskeyOptions {
  readonly challengeId: string
  readonly options: PublicKeyCredentialRequestOptionsJSON
}

/** The browser's response to {@link PasskeyOptions}. */
export interface PasskeyResponse {
  readonly challengeId: string
  readonly response: AuthenticationResponseJSON
}

/** What the user can see, and the service's names and limits. */
export interface PortalContext extends VisibleNames {
  readonly scopes: ReadonlyArray<string>
  readonly kinds: ReadonlyArray<{
    readonly name: EventKind
    readonly when: string
    readonly scope: "vault" | "entity"
    readonly schemaVersion: number
  }>
  readonly deliveryStatuses: ReadonlyArray<string>
  readonly activePerEntity: number
  readonly liveSecrets: number
  readonly rotationGraceSeconds: number
  readonly retentionDays: number
  /** Allowed ports of webhook URLs. */
  readonly webhookPorts: ReadonlyArray<number>
  /** Pages of block explorers by network, with `{hash}` and `{address}` in them. */
  readonly explorers: ById<Explorer>
}

/** Events that a webhook missed since a time, counted up to `countedUpTo`. */
export interface Missed {
  readonly since: string
  readonly count: number
  readonly countedUpTo: number
}

/** A new authenticator; its secret is returned only here. */
export interface Enrolment {
  /** For a QR code: otpauth://… */
  readonly uri: string
  /** The same secret for manual entry, base32. */
  readonly secret: string
  readonly backupCodes: ReadonlyArray<string>
}

/** Every route, by method and path under `/portal/api`. */
export interface PortalRoutes {
  "GET /session": { answer: SessionStatus }
  "POST /sign-in": { body: Sent<typeof bodies.Credentials>; answer: Done }
  "POST /sign-in/passkey/options": { answer: PasskeyOptions }
  "POST /sign-in/passkey": { body: PasskeyResponse; answer: Done }
  "POST /sign-in/provider": { answer: { readonly url: string } }
  "POST /sign-in/second-factor": { body: Sent<typeof bodies.Code>; answer: Done }
  "POST /invitation": { body: Sent<typeof bodies.Token>; answer: InvitationSummary }
  "POST /invitation/accept": { body: Sent<typeof bodies.Acceptance>; answer: Done }
  "POST /enrolment": { answer: Enrolment }
  "POST /enrolment/confirm": { body: Sent<typeof bodies.Code>; answer: Done }
  "POST /sign-out": { answer: Done }

  "GET /keys": { answer: Listed<ApiKey> }
  "POST /keys": { body: Sent<typeof bodies.KeyCreation>; answer: ApiKey & { readonly secret: string } }
  "PATCH /keys/:id": { body: Sent<typeof bodies.KeyEdit>; answer: ApiKey }
  "GET /keys/:id/credential": { answer: Credential }
  "POST /keys/:id/revoke": { answer: ApiKey }

  "GET /sessions": { answer: Listed<ListedSession> }
  "DELETE /sessions/:id": { answer: Done }
  "POST /sessions/end-others": { answer: Done }
  "POST /sessions/end-all": { answer: Done }
  "POST /password": { body: Sent<typeof bodies.PasswordChange>; answer: Done }
  "GET /backup-codes": { answer: { readonly left: number } }
  "POST /backup-codes": { body: Sent<typeof bodies.Confirmed>; answer: { readonly backupCodes: ReadonlyArray<string> } }
  "GET /passkeys": { answer: Listed<Passkey> }
  "POST /passkeys/options": {
    body: Sent<typeof bodies.Confirmed>
    answer: { readonly challengeId: string; readonly options: PublicKeyCredentialCreationOptionsJSON }
  }
  "POST /passkeys": { body: Sent<typeof bodies.NamedPasskey>; answer: Done }
  "DELETE /passkeys/:id": { answer: Done }
  "POST /confirmation/passkey": { answer: PasskeyOptions }

  "GET /context": { answer: PortalContext }
  "GET /event-counts": { answer: ById<EventCounts> }
  "GET /webhook-health": { answer: ById<Health> }
  "GET /webhook-traffic": { answer: ById<Traffic> }
  "GET /event-data": { answer: ById<ReceivedEvent["data"]> }
  "GET /asset-names": { answer: ById<AssetName> }
  "GET /search": { answer: Listed<Found> }
  "GET /webhooks/:id/missed": { answer: Missed }
  "POST /webhooks/:id/retry-waiting": { answer: Done }
  "POST /webhooks/:id/cancel-waiting": { answer: Done }
  "POST /deliveries/:id/retry-now": { answer: Done }
  "POST /deliveries/:id/cancel": { answer: Done }
  "POST /deliveries/:id/request-preview": { answer: PreparedRequest }
}
