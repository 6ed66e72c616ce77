/**
 * The sign-in library (passwords, sessions, identity provider), configured for the portal. It never answers a browser
 * directly: the portal's routes call it and return only what a page needs, so a session token is only ever in an HttpOnly
 * cookie. Accounts are created by invitations (Invitations.ts), never here.
 */
import { betterAuth } from "better-auth"
import { createAuthEndpoint } from "better-auth/api"
import { setSessionCookie } from "better-auth/cookies"
import { genericOAuth } from "better-auth/plugins/generic-oauth"
import { Schema } from "effect"
import type pg from "pg"
import { PASSWORD_MAX, PASSWORD_MIN } from "./passwordRules.ts"

/** Base path of the library; only the identity provider's redirect is served there. */
const BASE_PATH = "/portal/api/auth"
/** Longest lifetime of a session, in seconds, whatever its activity. */
const SESSION_SECONDS = 12 * 3_600
/** The header with the client's address, from the portal to the library. */
const CLIENT_HEADER = "x-portal-client"

/** The identity provider from the settings. */
export interface Provider {
  /** Its id in accounts and in its redirect URI. */
  readonly id: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
}

/** Claims of the identity provider about the person. */
export interface Claims {
  /** The person's id at the provider. */
  readonly subject: string
  readonly email: string
  /** Whether the provider has verified the address. */
  readonly verified: boolean
}

/** Options of an instance. */
export interface AuthOptions {
  /** The portal's origin. */
  readonly origin: string
  readonly pool: pg.Pool
  /** Signs cookies. */
  readonly secret: string
  readonly provider: Provider | undefined
  /** Whether a person with these claims may sign in; also updates the addresses of accounts. */
  readonly vouched: (claims: Claims) => Promise<boolean>
  readonly log: (level: string, message: string) => void
}

const times = { createdAt: "created_at", updatedAt: "updated_at" } as const

/** Functions for which the library has no route. Not reachable by browsers. */
const ownEndpoints = {
  id: "own-endpoints",
  endpoints: {
    /**
     * The token in the session's cookie, null unless its signature is valid. Whether the session exists must be read from the
     * database.
     */
    cookieToken: createAuthEndpoint.serverOnly({ method: "GET" }, async (ctx) => {
      const token = await ctx.getSignedCookie(ctx.context.authCookies.sessionToken.name, ctx.context.secret)
      return typeof token === "string" ? token : null
    }),
    /** Starts a session for a user who was identified by means other than a password. */
    startSession: createAuthEndpoint.serverOnly(
      { method: "POST", body: Schema.standardSchemaV1(Schema.Struct({ userId: Schema.String })) },
      async (ctx) => {
        const user = await ctx.context.internalAdapter.findUserById(ctx.body.userId)
        if (user === null) return ctx.json({ token: null })
        // Despite its type, null if the user was deactivated.
        const session = await ctx.context.internalAdapter.createSession(user.id)
        if (session === null) return ctx.json({ token: null })
        await setSessionCookie(ctx, { session, user })
        return ctx.json({ token: session.token })
      }
    )
  }
} as const

/** The hash of a password, for storage. */
export const hashPassword = (password: string): Promise<string> => Bun.password.hash(password.normalize("NFKC"), "argon2id")
/** Whether a password has this hash. */
export const verifyPassword = (password: string, hash: string): Promise<boolean> => Bun.password.verify(password.normalize("NFKC"), hash)

/** An instance for one origin. */
export const makeAuth = ({ log, origin, pool, provider, secret, vouched }: AuthOptions) =>
  betterAuth({
    appName: "Custody",
    baseURL: origin,
    basePath: BASE_PATH,
    trustedOrigins: [origin],
    secret,
    database: pool,
    telemetry: { enabled: false },
    // The portal has its own rate limits for everything that gets here (SignIn.ts).
    rateLimit: { enabled: false },
    logger: { level: "warn", log: (level, message) => log(level, message) },
    // Thrown to the portal, which logs it; the library would write it to stderr.
    onAPIError: { throw: true },
    user: { modelName: "portal_users", fields: { emailVerified: "email_verified", ...times } },
    session: {
      modelName: "portal_sessions",
      fields: { userId: "user_id", ipAddress: "ip_address", userAgent: "user_agent", expiresAt: "expires_at", ...times },
      expiresIn: SESSION_SECONDS,
      disableSessionRefresh: true,
      cookieCache: { enabled: false }
    },
    account: {
      modelName: "portal_accounts",
      fields: {
        userId: "user_id",
        accountId: "account_id",
        providerId: "provider_id",
        accessToken: "access_token",
        refreshToken: "refresh_token",
        idToken: "id_token",
        accessTokenExpiresAt: "access_token_expires_at",
        refreshTokenExpiresAt: "refresh_token_expires_at",
        ...times
      },
      updateAccountOnSignIn: false,
      // An identity is linked to the account with its address only if the provider says that the address is verified.
      accountLinking: { enabled: true, trustedProviders: [] }
    },
    verification: { modelName: "portal_verifications", fields: { expiresAt: "expires_at", ...times }, storeIdentifier: "hashed" },
    databaseHooks: {
      account: {
        create: {
          // The provider's tokens are only needed for the sign-in; what is not stored cannot be stolen.
          before: async (account) => ({ data: { ...account, accessToken: null, refreshToken: null, idToken: null } })
        }
      }
    },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: PASSWORD_MIN,
      maxPasswordLength: PASSWORD_MAX,
      password: { hash: hashPassword, verify: ({ hash, password }) => verifyPassword(password, hash) }
    },
    plugins: [
      ownEndpoints,
      ...(provider === undefined
        ? []
        : [
            genericOAuth({
              config: [
                {
                  providerId: provider.id,
                  discoveryUrl: `${provider.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`,
                  clientId: provider.clientId,
                  clientSecret: provider.clientSecret,
                  scopes: ["openid", "email", "profile"],
                  pkce: true,
                  requireIdTokenVerification: true,
                  disableSignUp: true,
                  // The library verifies the signature and the nonce of an ID token, but accepts an answer without one.
                  accountSubject: ({ profile: { id, sub }, tokens }) => {
                    if (tokens.idToken === undefined) throw new Error("the identity provider returned no ID token")
                    return String(sub ?? id)
                  },
                  // Checked at every sign-in, before the account is looked up: the library checks neither the address nor
                  // whether it is verified once an identity is linked.
                  mapProfileToUser: async ({ email, email_verified: verified, id, sub }) => {
                    const claims = { subject: String(sub ?? id), email: String(email), verified: verified === true || verified === "true" }
                    if (!(await vouched(claims))) throw new Error("the identity provider's claims are not accepted for this account")
                    return {}
                  }
                }
              ]
            })
          ])
    ],
    advanced: {
      cookiePrefix: "custody",
      useSecureCookies: origin.startsWith("https://"),
      defaultCookieAttributes: { path: "/portal", sameSite: "strict", httpOnly: true },
      // The browser returns from the identity provider's site.
      cookies: { state: { attributes: { sameSite: "lax" } } },
      ipAddress: { ipAddressHeaders: [CLIENT_HEADER] }
    }
  })

export type Auth = ReturnType<typeof makeAuth>
