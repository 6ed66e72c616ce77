/** The outcome of one request, and the names of results. Decision D-21. */
import type { Result } from "../../deliveries/Delivery.ts"

/** The response of an endpoint, or how the request failed. */
export interface Answer {
  readonly result: Result
  /** 0 without a response. */
  readonly httpStatus: number
  /** Milliseconds until the response headers arrived, or until the failure. */
  readonly latencyMs: number
  readonly bodySnippet: string | null
  /** Why a response is not accepted as HTTP, or why there is no access token; null for every other outcome. */
  readonly detail: string | null
  /** `Retry-After` in seconds; undefined without one. */
  readonly retryAfterSeconds: number | undefined
  /**
   * Whether the request used a kept connection that turned out to be closed: it broke before the first byte of a
   * response, or the response was 408, with which servers close idle connections; or a kept access token that is no longer accepted.
   * This is not the endpoint's failure, and the next attempt follows at once.
   */
  readonly stale: boolean
  /** Whether the service's own DNS resolver does not respond: then the attempt counts for nothing. Absent means no. */
  readonly resolverAway?: boolean
}

export const SNIPPET_BYTES = 1_024

const tlsCodes =
  /^(CERT_|ERR_TLS_|ERR_SSL_|ERR_BORINGSSL|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|EPROTO|UNKNOWN_CERTIFICATE)/

/** The result of a request that ended with a connection error. */
export const resultOfError = (error: Error & { readonly code?: string }): Result => {
  const code = error.code ?? ""
  if (code === "PROXY_ERROR") return "proxy_error"
  if (code === "PROXY_GATEWAY") return "network_error"
  if (code === "ECONNREFUSED") return "connection_refused"
  if (code === "ETIMEDOUT") return "timeout"
  if (tlsCodes.test(code)) return "tls_error"
  // Checked before the message, which for a connection that is reset early mentions that TLS was not established.
  if (["ECONNRESET", "EPIPE", "ECONNABORTED", "ConnectionClosed"].includes(code)) return "connection_reset"
  if (/certificate|handshake|self.signed|altname|TLS|SSL/i.test(error.message)) return "tls_error"
  return /socket hang up|closed/i.test(error.message) ? "connection_reset" : "network_error"
}

const UNKNOWN_ISSUER = "the certificate's authority is not known, or its chain is incomplete"
/** Why a certificate is not accepted. */
const certificateFaults: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "the certificate has expired",
  CERT_NOT_YET_VALID: "the certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another host",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is self-signed",
  CERT_SIGNATURE_FAILURE: UNKNOWN_ISSUER,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_ISSUER,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_ISSUER
}

/** The parser's reason for not accepting a response, in its own words, or what is wrong with a certificate; null for other errors. Decision D-30. */
export const detailOfError = ({ code = "", reason }: Error & { readonly code?: string; readonly reason?: string }): string | null =>
  code.startsWith("HPE_") ? (reason ?? code) : (certificateFaults[code] ?? null)

/**
 * Merges repetitions of one `Content-Length` in the head of a response, in place and without changing its length: RFC 9112,
 * 6.3 accepts them, and the parser does not. Differing lengths stay for the parser to reject.
 */
export const mergeLengths = (bytes: Buffer): void => {
  const text = bytes.toString("latin1")
  const head = text.slice(0, text.search(/\n\r?\n/) + 1)
  let first: string | undefined
  const merged = head.replace(/^content-length:[ \t]*(\d+)(?:[ \t]*,[ \t]*\1)*[ \t]*$/gim, (line, length: string) => {
    const name = first === undefined ? "content-length" : "length-as-said"
    first ??= length
    return first === length ? `${name}:${length}`.padEnd(line.length) : line
  })
  if (merged !== head) bytes.write(merged, "latin1")
}

/** The result of a status code; undefined codes do not count as a response. */
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

/** `Retry-After` in seconds, from either format. */
export const retryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  if (/^\d+$/.test(header.trim())) return Math.min(Number(header.trim()), Number.MAX_SAFE_INTEGER)
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.round((at - now) / 1_000))
}

/** The beginning of a body as clean UTF-8: control characters escaped, broken bytes replaced, at most 1,024 bytes. */
export const snippet = (bytes: Uint8Array): string | null => {
  if (bytes.length === 0) return null
  // A character at the cut is omitted; invalid bytes in the response are replaced.
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
