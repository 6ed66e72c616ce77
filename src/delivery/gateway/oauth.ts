/**
 * How a webhook gets an access token for the gateway in front of its endpoint: OAuth client credentials (RFC 6749, 4.4). The
 * client's secret is never returned, and a token URL of another origin does not get it unless the caller sends it again. C-12.
 */
import { Redacted, Schema } from "effect"

const text = (most: number, description: string, example: string, pattern = "^[!-~]([ -~]*[!-~])?$", rule = "visible ASCII characters") =>
  Schema.String.pipe(
    Schema.filter((value) => (value.length <= most && new RegExp(pattern).test(value)) || `must have 1 to ${most} ${rule}`)
  ).annotations({ jsonSchema: { type: "string", minLength: 1, maxLength: most, pattern, description, examples: [example] } })

const TokenUrl = Schema.String.annotations({
  message: () => "must be a URL",
  jsonSchema: {
    type: "string",
    format: "uri",
    pattern: "^[Hh][Tt][Tt][Pp][Ss]://",
    maxLength: 2_048,
    description: "The token endpoint; the rules of `url` hold",
    examples: ["https://login.example.com/oauth2/token"]
  }
})
const ClientId = text(512, "The service's client id at the token server", "custody")
const ClientSecret = text(1_024, "The client's secret; it is never returned", "s-81d0ff")
const Scope = text(
  1_024,
  "Requested scope, if any",
  "events.write",
  "^[!#-\\[\\]-~]+( [!#-\\[\\]-~]+)*$",
  "characters of scopes that one space separates"
)
const Audience = text(1_024, "Requested audience, if any: a parameter that some token servers require", "https://hooks.example.com")
const ClientAuthentication = Schema.Literal("basic", "post").annotations({
  identifier: "ClientAuthentication",
  title: "ClientAuthentication",
  description: "How the client authenticates: basic, by the Authorization header; post, by parameters in the body",
  examples: ["basic"]
})

/** The object in the body of a creation. */
export const NewOAuth = Schema.Struct({
  tokenUrl: TokenUrl,
  clientId: ClientId,
  clientSecret: ClientSecret,
  scope: Schema.optional(Scope),
  audience: Schema.optional(Audience),
  clientAuthentication: Schema.optional(ClientAuthentication)
}).annotations({ identifier: "WebhookOAuth", description: "OAuth client credentials that get the access token of every request" })

/** The object in the body of an update: merged with the stored one, as RFC 7396 has it, but null keeps the secret. */
export const PatchedOAuth = Schema.Struct({
  tokenUrl: Schema.optional(TokenUrl),
  clientId: Schema.optional(ClientId),
  clientSecret: Schema.optional(
    Schema.NullOr(ClientSecret).annotations({ description: "The client's secret; null or none keeps the stored one" })
  ),
  scope: Schema.optional(Schema.NullOr(Scope)),
  audience: Schema.optional(Schema.NullOr(Audience)),
  clientAuthentication: Schema.optional(ClientAuthentication)
}).annotations({
  identifier: "PatchedWebhookOAuth",
  description: "Changes of the OAuth client credentials. The stored secret is not kept if the origin of `url` or `tokenUrl` changes"
})
export type PatchedOAuth = typeof PatchedOAuth.Type

/** The object in responses: the secret is not returned. */
export const ShownOAuth = Schema.Struct({
  tokenUrl: Schema.String.annotations({ description: "The token endpoint", examples: ["https://login.example.com/oauth2/token"] }),
  clientId: Schema.String.annotations({ description: "The service's client id at the token server", examples: ["custody"] }),
  clientSecret: Schema.NullOr(Schema.String).annotations({ description: "Always null: the secret is not returned" }),
  scope: Schema.NullOr(Schema.String).annotations({ description: "Requested scope; null for none" }),
  audience: Schema.NullOr(Schema.String).annotations({ description: "Requested audience; null for none" }),
  clientAuthentication: ClientAuthentication
}).annotations({ identifier: "ShownWebhookOAuth", description: "OAuth client credentials, without their secret" })
export type ShownOAuth = typeof ShownOAuth.Type

/** What a token request needs. */
export const OAuth = Schema.Struct({ ...ShownOAuth.fields, clientSecret: Schema.Redacted(Schema.String) })
export type OAuth = typeof OAuth.Type

/** The credentials after a patch of what is stored; the names of fields that are missing, if any are. */
export const merged = (
  patch: PatchedOAuth,
  stored: (Omit<OAuth, "clientSecret"> & { readonly clientSecret: Redacted.Redacted | undefined }) | undefined
): OAuth | ReadonlyArray<string> => {
  const { clientSecret: given } = patch
  const clientSecret = given == null ? stored?.clientSecret : Redacted.make(given)
  const tokenUrl = patch.tokenUrl ?? stored?.tokenUrl,
    clientId = patch.clientId ?? stored?.clientId
  if (tokenUrl === undefined || clientId === undefined || clientSecret === undefined)
    return Object.entries({ tokenUrl, clientId, clientSecret }).flatMap(([name, value]) => (value === undefined ? [name] : []))
  return {
    tokenUrl,
    clientId,
    clientSecret,
    scope: patch.scope === undefined ? (stored?.scope ?? null) : patch.scope,
    audience: patch.audience === undefined ? (stored?.audience ?? null) : patch.audience,
    clientAuthentication: patch.clientAuthentication ?? stored?.clientAuthentication ?? "basic"
  }
}
