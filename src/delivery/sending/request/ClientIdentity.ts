/**
 * The TLS identity of deliveries: trusted roots (the built-in ones and WEBHOOK_EXTRA_CA), and the client certificate of
 * WEBHOOK_CLIENT_CERT_FILE for endpoints that require mTLS. The certificate is reloaded at run time, so it can be
 * replaced; if certificate and key do not match, or its validity has not begun or is over, the last pair stays in use. C-8.
 */
import { createHash, X509Certificate } from "node:crypto"
import * as fs from "node:fs"
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls"
import { Effect, Schedule } from "effect"
import { InvalidSettings } from "../../../runtime/settings/Settings.ts"
import type { Values } from "../../../runtime/settings/table.ts"

/** How often the certificate's files are checked: a change applies within 5 s. */
const LOOK = "2 seconds"

/** A client certificate and its private key, in PEM. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}

/** TLS options of connections. */
export interface Identity {
  readonly context: SecureContext
  /** Identifies the client certificate; empty without one. */
  readonly certificate: string
}

/** Mozilla's roots and those of an extra PEM file, and a client certificate if configured. TLS 1.2 or newer. */
export const trustIn = (extra: string | undefined, client?: ClientCertificate): SecureContext =>
  createSecureContext({ minVersion: "TLSv1.2", ...(extra === undefined ? {} : { ca: [...rootCertificates, extra] }), ...client })

const nameOf = (client: ClientCertificate | undefined): string =>
  client === undefined ? "" : createHash("sha256").update(client.cert).update(client.key).digest("hex").slice(0, 16)

const faultOf = (name: string, file: string, expected: string, error: unknown) =>
  new InvalidSettings({
    faults: [`${name}: read “${file}”, expected ${expected} (${error instanceof Error ? error.message : String(error)}).`]
  })

/** The PEM file of extra roots. Throws if it has no certificate, or one that cannot be read: OpenSSL ignores what follows that. */
const readRoots = (file: string): string => {
  const pem = fs.readFileSync(file, "utf8")
  const certificates = pem.split(/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/).slice(1)
  if (certificates.length === 0) throw new Error("it contains no certificate")
  for (const [index, certificate] of certificates.entries()) {
    try {
      new X509Certificate(`-----BEGIN CERTIFICATE-----${certificate}`)
    } catch (error) {
      throw new Error(`certificate ${index + 1} of ${certificates.length} cannot be read`, { cause: error })
    }
  }
  return pem
}

/** The current identity; fails if it is invalid at startup. Watches the certificate until its scope closes. */
export const clientIdentity = Effect.fnUntraced(function* (
  settings: Pick<Values, "webhookExtraCa" | "webhookClientCertFile" | "webhookClientKeyFile">
) {
  const { webhookClientCertFile: certFile, webhookClientKeyFile: keyFile, webhookExtraCa } = settings
  const extra = yield* Effect.try({
    try: () => (webhookExtraCa === undefined ? undefined : readRoots(webhookExtraCa)),
    catch: (error) => faultOf("WEBHOOK_EXTRA_CA", webhookExtraCa ?? "", "a PEM file of certificates", error)
  })
  const read = (): ClientCertificate | undefined =>
    certFile === undefined || keyFile === undefined
      ? undefined
      : { cert: fs.readFileSync(certFile, "utf8"), key: fs.readFileSync(keyFile, "utf8") }
  const make = (client: ClientCertificate | undefined): Identity => ({ context: trustIn(extra, client), certificate: nameOf(client) })

  let now = yield* Effect.try({
    try: () => make(read()),
    catch: (error) =>
      faultOf("WEBHOOK_CLIENT_CERT_FILE", certFile ?? "", "a PEM certificate with its key in WEBHOOK_CLIENT_KEY_FILE", error)
  })
  let fault = ""
  const look = Effect.suspend(() => {
    try {
      const client = read()
      if (client === undefined) return Effect.void
      const { validFromDate, validToDate } = new X509Certificate(client.cert)
      const time = Date.now()
      if (validFromDate.getTime() > time || validToDate.getTime() < time)
        throw new Error(`the certificate is valid from ${validFromDate.toISOString()} to ${validToDate.toISOString()}`)
      const isNew = nameOf(client) !== now.certificate
      if (isNew) now = make(client)
      fault = ""
      if (!isNew) return Effect.void
      return Effect.logInfo("deliveries now use a new client certificate")
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      if (message === fault) return Effect.void
      fault = message
      return Effect.logError(`WEBHOOK_CLIENT_CERT_FILE or WEBHOOK_CLIENT_KEY_FILE cannot be used, the last pair remains in use: ${message}`)
    }
  })
  if (certFile !== undefined) yield* Effect.forkScoped(Effect.schedule(look, Schedule.spaced(LOOK)))
  return {
    /** TLS options of a new connection. */
    now: () => now,
    /** The same without the client certificate, for connections to a proxy. */
    roots: trustIn(extra)
  }
})
