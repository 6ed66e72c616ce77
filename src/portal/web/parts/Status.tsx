/** A state as a word in a color; the color alone carries no meaning. */
export type Tone = "good" | "bad" | "wait" | "idle"

export const Status = ({ children, tone }: { readonly tone: Tone; readonly children: string }) => (
  <span className={`status ${tone}`}>{children}</span>
)

const tones: Readonly<Record<string, Tone>> = {
  DELIVERED: "good",
  ACTIVE: "good",
  HEALTHY: "good",
  confirmed: "good",
  "2xx": "good",
  COMPLETED: "good",
  RUNNING: "wait",
  PENDING: "wait",
  RETRYING: "wait",
  DEGRADED: "wait",
  pending: "wait",
  FAILED: "bad",
  FAILING: "bad",
  failed: "bad",
  HELD: "wait",
  PAUSED: "idle",
  HOLDING: "wait",
  CANCELED: "idle",
  DISABLED: "idle",
  replaced: "idle",
  dropped: "idle"
}

/** A state of the API for display: `DELIVERED` reads “Delivered”. */
export const State = ({ value }: { readonly value: string }) => <Status tone={tones[value] ?? "idle"}>{wordOf(value)}</Status>

/** A state of the API as a word. */
export const wordOf = (value: string): string => value.charAt(0).toUpperCase() + value.slice(1).toLowerCase()

const failures: Readonly<Record<string, string>> = {
  timeout: "Timed out",
  dns_error: "DNS error",
  connection_refused: "Connection refused",
  connection_reset: "Connection reset",
  tls_error: "TLS error",
  blocked_address: "Blocked address",
  network_error: "Network error",
  proxy_error: "Proxy error",
  auth_error: "No access token",
  interrupted: "Interrupted"
}

/** The outcome of an attempt: the status of the response, or what went wrong. */
export const Result = ({ httpStatus, result }: { readonly result: string; readonly httpStatus: number }) => (
  <Status tone={result === "2xx" ? "good" : "bad"}>{httpStatus > 0 ? `HTTP ${httpStatus}` : (failures[result] ?? result)}</Status>
)
