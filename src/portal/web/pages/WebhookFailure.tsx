/** Why a webhook fails: what happened at its last attempt, since when attempts fail, and what to do. */
import { Link } from "react-router"
import type { WebhookHealth } from "../../../client/index.ts"
import type { Traffic } from "../../server/Overview.ts"
import { useFew } from "../list.ts"
import { deliveryPath, RECENT_HOURS, unreliable } from "../parts/attempts.ts"
import { Time } from "../parts/Time.tsx"

const statuses: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout"
}

const credentials = "Check the headers and the access token of the webhook, and that the endpoint verifies with the current secret."
const address = "Check the path of the URL, and that it accepts POST."
const adviceOn: Readonly<Record<number, string>> = { 401: credentials, 403: credentials, 404: address, 405: address }

type Words = readonly [what: string, advice: string]
const words: Readonly<Record<string, Words>> = {
  "3xx": ["answers with a redirect", "Redirects are not followed: set the URL to the final address."],
  "4xx": ["rejects requests (4xx)", "Read the responses under Deliveries, and check the URL, the headers and the verification."],
  "5xx": ["answers with an error (5xx)", "Look for the error in the logs of the endpoint."],
  timeout: ["does not answer in time", "Answer 2xx first, and process the event afterwards."],
  dns_error: ["host name cannot be resolved", "Check the host name of the URL and its DNS records."],
  connection_refused: ["connection refused", "Check that the endpoint runs, and that its firewall admits the source addresses."],
  connection_reset: ["connection reset", "Check the proxy or firewall in front of the endpoint."],
  tls_error: ["TLS error", "Check that the certificate is valid for the host, has not expired, and is sent with its whole chain."],
  blocked_address: ["address is not public", "Point the host name to a public address."],
  network_error: ["network error", "Check that the endpoint can be reached from the internet."],
  proxy_error: ["the service's proxy failed", "Attempts are repeated; the endpoint is not the cause."],
  auth_error: ["no access token", "Check the token URL, the client id and the client secret of the webhook."],
  interrupted: ["attempt interrupted", "It is repeated; the endpoint is not the cause."]
}

/** A failed attempt in words, and what to do; `httpStatus` is 0 if there was no response or it is not known. */
export const failureWords = (result: string, httpStatus = 0): Words => {
  const [what, advice] = words[result] ?? [result, "Read the attempts under Deliveries."]
  return httpStatus === 0
    ? [what, advice]
    : [`answers ${[httpStatus, statuses[httpStatus]].filter(Boolean).join(" ")}`, adviceOn[httpStatus] ?? advice]
}

/** Whether its last attempts failed. */
export const isFailing = ({ consecutiveFailures, lastResult }: WebhookHealth): boolean =>
  consecutiveFailures > 0 && lastResult !== null && lastResult !== "2xx"

/** In a list: what happens, and since when. */
export const FailureLine = ({ health: { failingSince, lastResult } }: { readonly health: WebhookHealth }) => (
  <>
    {failureWords(lastResult ?? "")[0]}
    {failingSince === null ? null : (
      <>
        , failing since <Time at={failingSince} as="second" />
      </>
    )}
  </>
)

/** Of a webhook whose deliveries arrive only by repeated attempts: how many attempts fail. Nothing if few do. */
export const UnreliableLine = ({ traffic }: { readonly traffic: Traffic | undefined }) => {
  const found = unreliable(traffic)
  return found === undefined ? null : (
    <>
      {found.failed} of {found.of} attempts failed in the last {RECENT_HOURS} hours
    </>
  )
}

/** Deliveries among which the last failed attempt is looked for. */
const SAMPLE = 100

/** On the page of a webhook: the last failure with its status, the time, and what to do. */
export const LastFailure = ({ health, webhookId }: { readonly webhookId: string; readonly health: WebhookHealth }) => {
  const { data } = useFew(`/v1/webhooks/${webhookId}/deliveries`, SAMPLE, 30_000)
  const [last] = (data ?? [])
    .flatMap((delivery) => delivery.attempts.map((attempt, index) => ({ ...attempt, path: deliveryPath(delivery, index + 1) })))
    .filter(({ result }) => result === health.lastResult)
    .sort((a, b) => b.at.localeCompare(a.at))
  const [what, advice] = failureWords(health.lastResult ?? "", last?.httpStatus)
  const detail = last?.detail ?? null
  const time = health.lastFailureAt === null ? null : <Time at={health.lastFailureAt} as="second" />
  return (
    <>
      Last failure
      {time === null ? null : <> at {last === undefined ? time : <Link to={last.path}>{time}</Link>}</>}: {what}
      {detail === null ? null : ` (${detail})`}
      {health.failingSince === null ? null : (
        <>
          , failing since <Time at={health.failingSince} as="second" />
        </>
      )}
      . {advice}
    </>
  )
}
