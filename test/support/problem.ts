/** The error envelope of every response that is not 2xx. Spec: Errors 1. Decision D-4. */
import { expect } from "bun:test"
import type { Answer } from "./app.ts"
import type { RawAnswer } from "./raw.ts"

/** The status that each code goes with. */
const statuses: { readonly [code: string]: number } = {
  invalid_parameter: 400,
  unknown_parameter: 400,
  invalid_cursor: 400,
  malformed_json: 400,
  invalid_body: 400,
  missing_credentials: 401,
  invalid_api_key: 401,
  expired_api_key: 401,
  revoked_api_key: 401,
  ip_not_allowed: 403,
  insufficient_scope: 403,
  owner_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  webhook_limit_reached: 409,
  webhook_disabled: 409,
  recovery_running: 409,
  recovery_ended: 409,
  rotation_limit_reached: 409,
  redelivery_limit_reached: 409,
  cursor_expired: 410,
  cursor_gone: 410,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  url_not_deliverable: 422,
  idempotency_key_reused: 422,
  rate_limited: 429,
  too_many_streams: 429,
  service_unavailable: 503
}
/** Codes that name the fields at fault. */
const withFields = ["invalid_parameter", "unknown_parameter", "invalid_cursor", "invalid_body", "url_not_deliverable"]

/** Checks a response against the envelope and returns its code. */
const problemOf = (status: number, body: string, header: (name: string) => string | null): string => {
  const problem = JSON.parse(body)
  const { code, detail, errors, requestId, title, type, oldestCursor, ...rest } = problem
  expect(oldestCursor === undefined).toBe(code !== "cursor_expired" && code !== "cursor_gone")
  expect(rest).toEqual({ status })
  expect(statuses[code]).toBe(status)
  expect(type).toBe(`/v1/docs/errors/${code}`)
  for (const text of [title, detail]) expect(text).toMatch(/^.{3,}$/)
  expect(header("content-type")).toBe("application/problem+json")
  expect(requestId).toBe(header("x-request-id"))
  expect(requestId).toMatch(/^req_[0-9a-z]{26}$|^[A-Za-z0-9_-]{8,64}$/)
  expect([code, withFields.includes(code)]).toEqual([code, errors !== undefined])
  for (const one of errors ?? []) expect(Object.keys(one).sort()).toEqual(["code", "detail", "field", "in"])
  expect(body).not.toMatch(/SELECT|postgres|node_modules|\.ts|Effect|Error:|undefined/i)
  if (status === 401) expect(header("www-authenticate")).toStartWith("Bearer")
  if (status === 429 || status === 503) expect(Number(header("retry-after"))).toBeGreaterThanOrEqual(1)
  return code
}

/** Checks a response against the envelope and returns its code. */
export const codeOf = ({ headers, status, text }: Answer): string => problemOf(status, text, (name) => headers.get(name))

/** The same for a response that was read as bytes. */
export const rawCode = ({ body, headers, status }: RawAnswer): string => problemOf(status, body, (name) => headers[name] ?? null)
