/** The outcome of one request, and how what an endpoint does is named. Decision D-21. */
import type { Result } from "../deliveries/Delivery.ts"

/** What an endpoint answered, or how the request failed. */
export interface Answer {
  readonly result: Result
  /** 0 without an answer. */
  readonly httpStatus: number
  /** Milliseconds until the response headers arrived, or until the failure. */
  readonly latencyMs: number
  readonly bodySnippet: string | null
  /** Seconds that a `Retry-After` asks for; undefined without one. */
  readonly retryAfterSeconds: number | undefined
  /**
   * Whether the request went out on a kept connection that turned out to be closed: it died before the first byte of an
   * answer, or answered 408, by which servers end idle connections. The endpoint is not at fault.
   */
  readonly stale: boolean
  /** Whether it failed before it reached any network: no resolver answered, or there was no route or no socket. Absent: no. */
  readonly local?: boolean
}

const SNIPPET_BYTES = 1_024

const tlsCodes =
  /^(CERT_|ERR_TLS_|ERR_SSL_|ERR_BORINGSSL|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|EPROTO|UNKNOWN_CERTIFICATE)/

/** Codes of errors that come from this machine and not from the endpoint or the way to it. */
const localCodes = new Set([
  "ENETUNREACH",
  "ENETDOWN",
  "EHOSTUNREACH",
  "EADDRNOTAVAIL",
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "FailedToOpenSocket"
])

/** Whether a connection failed before it reached any network. */
export const isLocal = (error: Error & { readonly code?: string }): boolean => localCodes.has(error.code ?? "")

/** How a request failed that ended with an error of the connection. */
export const resultOfError = (error: Error & { readonly code?: string }): Result => {
  const code = error.code ?? ""
  if (code === "PROXY_ERROR") return "proxy_error"
  if (code === "PROXY_GATEWAY") return "network_error"
  if (code === "ECONNREFUSED") return "connection_refused"
  if (code === "ETIMEDOUT") return "timeout"
  if (tlsCodes.test(code) || /certificate|handshake|self.signed|altname|TLS|SSL/i.test(error.message)) return "tls_error"
  if (["ECONNRESET", "EPIPE", "ECONNABORTED", "ConnectionClosed"].includes(code) || /socket hang up|closed/i.test(error.message))
    return "connection_reset"
  return "network_error"
}

/** The result of a status code; what HTTP does not define is no answer. */
export const resultOfStatus = (status: number): Result =>
  status >= 200 && status < 300
    ? "2xx"
    : status >= 300 && status < 400
      ? "3xx"
      : status >= 400 && status < 500
        ? "4xx"
        : status >= 500 && status < 600
          ? "5xx"
          : "network_error"

/** `Retry-After` in seconds, from either of its forms. */
export const retryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim())
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.round((at - now) / 1_000))
}

/** The beginning of a body as clean UTF-8: control characters escaped, broken bytes replaced, at most 1,024 bytes. */
export const snippet = (bytes: Uint8Array): string | null => {
  if (bytes.length === 0) return null
  // A character that the cut goes through is left out; one that is broken in the answer itself is replaced.
  const text = new TextDecoder().decode(bytes.subarray(0, SNIPPET_BYTES), { stream: bytes.length >= SNIPPET_BYTES })
  let out = "",
    size = 0
  for (const char of text) {
    const clean = /[\p{Cc}\p{Cs}]/u.test(char) ? `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}` : char
    size += Buffer.byteLength(clean)
    if (size > SNIPPET_BYTES) break
    out += clean
  }
  return out
}
