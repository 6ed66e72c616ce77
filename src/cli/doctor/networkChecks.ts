/** The doctor's checks of other servers: mail server, DNS resolvers, egress proxy, collector and identity provider, if configured. */
import { lookup, Resolver } from "node:dns/promises"
import { readFileSync } from "node:fs"
import * as net from "node:net"
import { createSecureContext, rootCertificates } from "node:tls"
import { Effect, Redacted } from "effect"
import { createTransport } from "nodemailer"
import { openTunnel } from "../../runtime/processes/egressProxy.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type Finding, fault, notice, unready, well, why } from "./Finding.ts"

const PATIENCE_MS = 5_000

const tried = (subject: string, good: string, advice: string, call: () => Promise<unknown>): Effect.Effect<Finding> =>
  Effect.tryPromise({ try: call, catch: why }).pipe(
    Effect.as(well(subject, good)),
    Effect.catchAll((reason) => Effect.succeed(fault(subject, `It cannot be used: ${reason}.`, advice, 5)))
  )

const mail = (url: string) =>
  tried(
    "Mail server",
    `${new URL(url).host} accepts messages`,
    "Check SMTP_URL: host, port, user and password. Until it works, notices are retried.",
    async () => {
      const transport = createTransport({
        url,
        connectionTimeout: PATIENCE_MS,
        greetingTimeout: PATIENCE_MS,
        socketTimeout: PATIENCE_MS
      })
      try {
        await transport.verify()
      } finally {
        transport.close()
      }
    }
  )

/** Responses of a working resolver that does not know the name. */
const known = new Set(["ENOTFOUND", "ENODATA", "ESERVFAIL", "EREFUSED"])

const resolver = (address: string) =>
  tried(`Resolver ${address}`, "responds", "Check WEBHOOK_DNS_SERVERS: no delivery is sent without DNS.", async () => {
    const asked = new Resolver({ timeout: 2_000, tries: 1 })
    asked.setServers([address])
    await asked.resolve4("example.com").catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && known.has(String(error.code)))) throw error
    })
  })

/** What the proxy is asked for: a well-known host, or without DNS an address that nothing has. That it answers is what counts. */
const target = async () => ({
  address: await lookup("example.com").then(
    ({ address }) => address,
    () => "192.0.2.1"
  ),
  port: 443
})

const egressProxy = (url: URL, extraCa: string | undefined) =>
  tried(
    "Egress proxy",
    `${url.host} accepts CONNECT`,
    "Check WEBHOOK_PROXY_URL: scheme, host, port, user and password, and whether it allows CONNECT. Until it works, deliveries wait.",
    async () => {
      const asked = await target()
      await new Promise<void>((resolve, reject) => {
        const trust = createSecureContext(extraCa === undefined ? {} : { ca: [...rootCertificates, readFileSync(extraCa)] })
        const patience = AbortSignal.timeout(PATIENCE_MS)
        patience.addEventListener("abort", () => reject(new Error("no answer")))
        openTunnel({ url, trust }, asked, patience, (error, socket) => {
          socket?.destroy()
          if (error?.code === "PROXY_ERROR") reject(new Error(error.message))
          else resolve()
        })
      })
    }
  )

const collector = (endpoint: string) =>
  tried(
    "Collector",
    `${new URL(endpoint).host} accepts connections`,
    "Check OTEL_EXPORTER_OTLP_ENDPOINT; the service runs without it.",
    () => {
      const { hostname, port, protocol } = new URL(endpoint)
      return new Promise((resolve, reject) => {
        const socket = net.connect({ host: hostname, port: Number(port || (protocol === "https:" ? 443 : 80)), timeout: PATIENCE_MS })
        socket.once("connect", () => resolve(socket.destroy()))
        socket.once("timeout", () => reject(new Error("no answer")))
        socket.once("error", reject)
      })
    }
  )

const identityProvider = (issuer: string) =>
  tried(
    "Identity provider",
    `${issuer} serves its discovery document`,
    "Check PORTAL_OIDC_ISSUER; until it works, signing in through the identity provider fails.",
    async () => {
      const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`
      const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS), redirect: "error" })
      if (!answer.ok) throw new Error(`${url} answers ${answer.status}`)
    }
  )

/** All network checks. */
export const outside = Effect.flatMap(
  Settings,
  ({ noticeFrom, otlpEndpoint, portalOidcIssuer, smtpUrl, webhookDnsServers, webhookExtraCa, webhookProxyUrl }) =>
    Effect.all(
      [
        smtpUrl === undefined
          ? Effect.succeed(
              unready(
                "Mail server",
                "SMTP_URL is not set.",
                "Set it: until then notices to the owners of failing webhooks are logged and stored, but not sent."
              )
            )
          : mail(Redacted.value(smtpUrl)),
        ...(smtpUrl !== undefined && /@localhost>?\s*$/i.test(noticeFrom)
          ? [
              Effect.succeed(
                notice(
                  "NOTICE_FROM",
                  `E-mail is sent from ${noticeFrom}.`,
                  "Set it to an address of your domain: mail servers reject localhost."
                )
              )
            ]
          : []),
        ...webhookDnsServers.map(resolver),
        ...(webhookProxyUrl === undefined ? [] : [egressProxy(new URL(Redacted.value(webhookProxyUrl)), webhookExtraCa)]),
        ...(otlpEndpoint === undefined ? [] : [collector(otlpEndpoint)]),
        ...(portalOidcIssuer === undefined ? [] : [identityProvider(portalOidcIssuer)])
      ],
      { concurrency: "unbounded" }
    )
)
