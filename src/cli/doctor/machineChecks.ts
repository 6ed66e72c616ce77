/** The doctor's checks on this machine: data directory, disk, ports, certificates, proxy variables. */
import { createPrivateKey, X509Certificate } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { Config, Effect, Option } from "effect"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { listenFault, livePid } from "../../runtime/embedded/Process.ts"
import type { Cidr } from "../../runtime/settings/Format.ts"
import { isClearText, Settings } from "../../runtime/settings/Settings.ts"
import { type Finding, fault, notice, unready, well, why } from "./Finding.ts"

const GIB = 1024 ** 3,
  DAY = 86_400_000

/** The nearest existing directory: the data directory, or where it would be created. */
const nearest = (folder: string): string => (fs.existsSync(folder) ? folder : nearest(path.dirname(folder)))

/** Whether the data directory is writable and has space. */
export const dataDirectory = Effect.gen(function* () {
  const { root } = yield* DataDir
  const settings = yield* Settings
  const folder = nearest(root)
  const findings: Array<Finding> = []
  try {
    fs.accessSync(folder, fs.constants.W_OK)
    findings.push(well("Data directory", folder === root ? root : `${root}, which the first start creates`))
  } catch (error) {
    findings.push(
      fault("Data directory", `${root} cannot be written to: ${why(error)}.`, "Change its owner, or set DATA_DIR to another folder.", 3)
    )
  }
  const { bavail, bsize } = fs.statfsSync(folder)
  const free = (bavail * bsize) / GIB
  const says = `${free.toFixed(1)} GiB free`
  const embedded = settings.databaseUrl === undefined || settings.temporalAddress === undefined
  if (free < 0.5) findings.push(fault("Disk", `${says} at ${folder}.`, "Free disk space: nothing can be recorded without it.", 1))
  else if (free < 5 && embedded)
    findings.push(notice("Disk", `${says} at ${folder}.`, "The embedded servers store their data there; free more disk space."))
  else findings.push(well("Disk", says))
  return findings
})

interface Listener {
  readonly subject: string
  readonly host: string
  readonly hostSetting?: string
  readonly port: number
  readonly setting: string
  /** The process that may use the port: the service itself, or its own server. */
  readonly owner: number | undefined
}

const portOf = ({ host, hostSetting, owner, port, setting, subject }: Listener): Effect.Effect<Finding> =>
  Effect.map(port === 0 ? Effect.succeed(undefined) : listenFault(port, host), (code) => {
    if (port === 0) {
      return well(
        subject,
        owner === undefined ? "any free port is chosen at startup" : `port chosen at startup, in use by this service (process ${owner})`
      )
    }
    if (code === undefined) return well(subject, `port ${port} on ${host} is free`)
    if (owner !== undefined) return well(subject, `port ${port}, in use by this service (process ${owner})`)
    if (code === "EADDRINUSE")
      return fault(subject, `Port ${port} is in use by another program.`, `Free it, or set ${setting} to another port.`, 5)
    if (code === "EACCES")
      return fault(subject, `This user is not allowed to listen on port ${port}.`, `Set ${setting} to a port of 1024 or more.`, 3)
    const host_ = hostSetting ?? setting
    return fault(subject, `Nothing can listen on ${host}:${port} (${code}).`, `Set ${host_} to an address of this machine.`, 3)
  })

/** The ports that startup needs, and who uses them. */
export const ports = Effect.gen(function* () {
  const dataDir = yield* DataDir
  const settings = yield* Settings
  const run = (name: string) => dataDir.at("run", `${name}.pid`)
  const service = livePid(run("api"))
  const listeners: ReadonlyArray<Listener> = [
    { subject: "Public API", host: settings.host, hostSetting: "HOST", port: settings.port, setting: "PORT", owner: service },
    {
      subject: "Platform",
      host: settings.platformHost,
      hostSetting: "PLATFORM_HOST",
      port: settings.platformPort,
      setting: "PLATFORM_PORT",
      owner: service
    },
    ...(settings.databaseUrl === undefined
      ? [
          {
            subject: "Postgres port",
            host: "127.0.0.1",
            port: settings.embeddedPostgresPort,
            setting: "EMBEDDED_POSTGRES_PORT",
            owner: livePid(run("postgres"), dataDir.at("postgres"))
          }
        ]
      : []),
    ...(settings.temporalAddress === undefined
      ? (["EMBEDDED_TEMPORAL_PORT", "EMBEDDED_TEMPORAL_UI_PORT"] as const).map((setting) => ({
          subject: setting === "EMBEDDED_TEMPORAL_PORT" ? "Temporal port" : "Temporal UI",
          host: "127.0.0.1",
          port: setting === "EMBEDDED_TEMPORAL_PORT" ? settings.embeddedTemporalPort : settings.embeddedTemporalUiPort,
          setting,
          owner: livePid(run("temporal"), dataDir.at("temporal.db"))
        }))
      : [])
  ]
  return yield* Effect.forEach(listeners, portOf, { concurrency: "unbounded" })
})

const readable = (setting: string, file: string): string | Finding => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch (error) {
    return fault(setting, `${file} cannot be read: ${why(error)}.`, `Set ${setting} to a PEM file that this user can read.`, 3)
  }
}

const certificateOf = (
  setting: string,
  file: string,
  keySetting: string | undefined,
  keyFile: string | undefined
): ReadonlyArray<Finding> => {
  const pem = readable(setting, file)
  if (typeof pem !== "string") return [pem]
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    return [fault(setting, `${file} contains no certificate.`, `Set ${setting} to a PEM file.`, 3)]
  }
  if (keySetting !== undefined && keyFile !== undefined) {
    const key = readable(keySetting, keyFile)
    if (typeof key !== "string") return [key]
    try {
      if (!certificate.checkPrivateKey(createPrivateKey(key)))
        return [
          fault(keySetting, `The key does not belong to the certificate of ${setting}.`, "Set both to files of the same key pair.", 3)
        ]
    } catch {
      return [fault(keySetting, `${keyFile} contains no private key.`, `Set ${keySetting} to a PEM file without a password.`, 3)]
    }
  }
  const left = Math.floor((Date.parse(certificate.validTo) - Date.now()) / DAY)
  if (Date.parse(certificate.validFrom) > Date.now())
    return [fault(setting, `The certificate is valid only from ${certificate.validFrom}.`, "Use one that is valid now.", 3)]
  if (left < 0) return [fault(setting, `The certificate expired on ${certificate.validTo}.`, "Renew it.", 3)]
  if (left < 14) return [notice(setting, `The certificate expires in ${left} days.`, "Renew it.")]
  return [well(setting, `valid for ${left} more days`)]
}

/** The configured certificates: readable, not expired, and matching their key. */
export const certificates = Effect.map(Settings, (settings): ReadonlyArray<Finding> => {
  const {
    temporalTlsCaFile,
    temporalTlsCertFile,
    temporalTlsKeyFile,
    tlsCertFile,
    tlsKeyFile,
    webhookClientCertFile,
    webhookClientKeyFile,
    webhookExtraCa
  } = settings
  return [
    ...(tlsCertFile === undefined ? [] : certificateOf("TLS_CERT_FILE", tlsCertFile, "TLS_KEY_FILE", tlsKeyFile)),
    ...(temporalTlsCertFile === undefined
      ? []
      : certificateOf("TEMPORAL_TLS_CERT_FILE", temporalTlsCertFile, "TEMPORAL_TLS_KEY_FILE", temporalTlsKeyFile)),
    ...(temporalTlsCaFile === undefined ? [] : certificateOf("TEMPORAL_TLS_CA_FILE", temporalTlsCaFile, undefined, undefined)),
    ...(webhookClientCertFile === undefined
      ? []
      : certificateOf("WEBHOOK_CLIENT_CERT_FILE", webhookClientCertFile, "WEBHOOK_CLIENT_KEY_FILE", webhookClientKeyFile)),
    ...(webhookExtraCa === undefined ? [] : certificateOf("WEBHOOK_EXTRA_CA", webhookExtraCa, undefined, undefined))
  ]
})

const hasEveryAddress = (ranges: ReadonlyArray<Cidr>): boolean => ranges.some(({ network: [, bits] }) => bits === 0)

/** Conditions that are not faults but that the operator should know. */
export const conditions = Effect.gen(function* () {
  const settings = yield* Settings
  const set = yield* Effect.filter(["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"], (name) =>
    Effect.map(Effect.orElseSucceed(Config.option(Config.nonEmptyString(name)), Option.none), Option.isSome)
  )
  const embedded = [
    ...(settings.databaseUrl === undefined ? ["DATABASE_URL"] : []),
    ...(settings.temporalAddress === undefined ? ["TEMPORAL_ADDRESS"] : [])
  ]
  return [
    ...(embedded.length === 0
      ? []
      : [
          unready(
            "Embedded servers",
            `${embedded.join(" and ")} ${embedded.length === 1 ? "is" : "are"} not set: data is on this machine only.`,
            "Use servers of your own in production."
          )
        ]),
    ...(set.length === 0
      ? []
      : [notice("Proxy", `${set.join(", ")} is set.`, "Deliveries ignore it: they connect only to the address that was checked.")]),
    ...(isClearText(settings)
      ? [
          unready(
            "Clear text",
            `HOST is ${settings.host}, and neither TLS_CERT_FILE nor TRUSTED_PROXIES is set.`,
            "API keys would be sent in clear text: serve HTTPS, or set TRUSTED_PROXIES to the proxy that does."
          )
        ]
      : settings.portalBaseUrl?.startsWith("https:") === true && settings.tlsCertFile === undefined && settings.trustedProxies.length === 0
        ? [
            notice(
              "Proxies",
              "PORTAL_BASE_URL is https, and neither TLS_CERT_FILE nor TRUSTED_PROXIES is set.",
              "If a proxy serves HTTPS, name it in TRUSTED_PROXIES: otherwise all clients behind it share one address for rate limits and IP allowlists."
            )
          ]
        : []),
    ...(hasEveryAddress(settings.trustedProxies)
      ? [
          unready(
            "TRUSTED_PROXIES",
            "It contains every address.",
            "Name the proxies alone: with X-Forwarded-For, everybody could choose the address that rate limits and IP allowlists see."
          )
        ]
      : []),
    ...(hasEveryAddress(settings.webhookAllowCidrs)
      ? [
          unready(
            "WEBHOOK_ALLOW_CIDRS",
            "It contains every address.",
            "Name single ranges: deliveries could reach all your private networks."
          )
        ]
      : []),
    ...(settings.rateLimit === null
      ? [unready("Rate limit", "RATE_LIMIT is off.", "Set it: the limits on failed authentications and pings are also off.")]
      : [])
  ]
})
