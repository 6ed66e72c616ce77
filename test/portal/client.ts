/** A browser without a screen: keeps cookies, and sends what a page of the portal sends. */
import { Duration, Effect, Layer, Redacted } from "effect"
import * as OTPAuth from "otpauth"
import { Invitations } from "../../src/portal/signIn/Invitations.ts"
import * as Database from "../../src/runtime/database/Database.ts"
import { type Answer, type App, ORIGIN, patiently } from "../support/app.ts"

export const PASSWORD = "correct horse battery staple"

/** Invites a user with the CLI's code, and returns the token of the link. */
export const invite = async (
  app: App,
  userId: string,
  options: { readonly reset?: boolean; readonly validity?: Duration.DurationInput } = {}
) => {
  const database = Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)
  const { token } = await Effect.runPromise(
    Effect.flatMap(Invitations, (invitations) =>
      invitations.create(userId, { reset: options.reset ?? false, validity: Duration.decode(options.validity ?? "1 hour") })
    ).pipe(Effect.provide(Layer.provide(Invitations.layer, database)))
  )
  return Redacted.value(token)
}

/** An authenticator app. The time steps before and after the current one are accepted, too: a test has three codes without waiting. */
export class Authenticator {
  readonly #totp: OTPAuth.TOTP
  #last = 0
  readonly secret: string
  constructor(uri: string) {
    const parsed = OTPAuth.URI.parse(uri)
    if (!(parsed instanceof OTPAuth.TOTP)) throw new Error("not a TOTP")
    this.#totp = parsed
    this.secret = parsed.secret.base32
  }
  /** A code that was not used before; waits for the next time step if all valid ones were used. */
  async code(): Promise<string> {
    for (;;) {
      const step = Math.floor(Date.now() / 30_000)
      for (const candidate of [step - 1, step, step + 1]) {
        // A code of the previous step is valid until this step ends, which must not happen while the request is in flight.
        if (candidate <= this.#last || (candidate < step && Date.now() % 30_000 > 15_000)) continue
        this.#last = candidate
        return this.#totp.generate({ timestamp: candidate * 30_000 })
      }
      await Bun.sleep(500)
    }
  }
}

export class Visitor {
  readonly cookies = new Map<string, string>()
  /** Of the latest response. */
  setCookies: ReadonlyArray<string> = []
  authenticator: Authenticator | undefined
  /** Accepted like codes of the authenticator, without waiting for the next one. */
  readonly backupCodes: Array<string> = []
  readonly app: App
  readonly origin: string
  constructor(app: App) {
    this.app = app
    this.origin = app.env["PORTAL_BASE_URL"] ?? app.main?.baseUrl ?? ORIGIN
  }

  /** A request as a page of the portal sends it, repeated after 503 where the app's tests do; `headers` replace defaults, and an empty one removes it. */
  request(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const send = () => this.#request(method, path, body, headers)
    return this.app.patient ? patiently(send) : send()
  }

  async #request(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const own: Record<string, string> = {
      host: new URL(this.origin).host,
      origin: this.origin,
      "sec-fetch-site": "same-origin",
      "x-portal": "1",
      cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers
    }
    const sent = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ""))
    const response = await this.app.send("api", `/portal${path}`, {
      method,
      headers: sent,
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    this.setCookies = response.headers.getSetCookie()
    for (const one of this.setCookies) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? []
      if (value === "" || /max-age=0/i.test(one)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: text.startsWith("{") ? JSON.parse(text) : undefined }
  }

  get(path: string) {
    return this.request("GET", path)
  }

  async state(): Promise<string> {
    return (await this.get("/api/session")).json.state
  }

  /** From the invitation's token to a complete session. */
  async accept(token: string): Promise<void> {
    const accepted = await this.request("POST", "/api/invitation/accept", { token, password: PASSWORD })
    if (accepted.status !== 200) throw new Error(`the invitation was refused: ${accepted.text}`)
    const begun = await this.request("POST", "/api/enrolment", {})
    this.authenticator = new Authenticator(begun.json.uri)
    this.backupCodes.push(...begun.json.backupCodes)
    const confirmed = await this.request("POST", "/api/enrolment/confirm", { code: await this.authenticator.code() })
    if (confirmed.status !== 200) throw new Error(`the enrolment was refused: ${confirmed.text}`)
  }

  /** Signs in to an account with its authenticator. */
  async signIn(email: string, authenticator: Authenticator): Promise<void> {
    this.authenticator = authenticator
    const first = await this.request("POST", "/api/sign-in", { email, password: PASSWORD })
    if (first.status !== 200) throw new Error(`the sign-in was refused: ${first.text}`)
    const second = await this.request("POST", "/api/sign-in/second-factor", { code: await authenticator.code() })
    if (second.status !== 200) throw new Error(`the second factor was refused: ${second.text}`)
  }

  async code(): Promise<string> {
    if (this.authenticator === undefined) throw new Error("no authenticator is set up")
    return this.authenticator.code()
  }

  /** A backup code that was not used before; there are ten. */
  backupCode(): string {
    const [code] = this.backupCodes.splice(0, 1)
    if (code === undefined) throw new Error("no backup code is left")
    return code
  }
}

/** A visitor who has accepted an invitation and is signed in. */
export const signedIn = async (app: App, userId: string): Promise<Visitor> => {
  const visitor = new Visitor(app)
  await visitor.accept(await invite(app, userId))
  return visitor
}
