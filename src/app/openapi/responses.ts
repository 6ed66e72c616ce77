/**
 * The responses of operations. Problems have one schema; responses with the same codes are one component, whose examples
 * name the codes. Decision D-4.
 */
import { type Code, codes } from "../../http/Problem.ts"
import { withExample } from "./examples.ts"
import { type Json, list, mapValues, type Object, object, refOf, refTo } from "./json.ts"

const header = (description: string, type = "string"): Json => ({ description, schema: { type } })
const headers: Object = {
  "X-Request-Id": header("Request id: the client's own if it matches [A-Za-z0-9_-]{8,64}, otherwise one that the service generates"),
  "RateLimit-Policy": header("Quota of the API key: q requests per w seconds"),
  RateLimit: header("Remaining quota: r requests; the quota is restored in t seconds"),
  "X-Key-Expires-At": header("When the API key expires, UTC ISO 8601; from 30 days before, and absent otherwise")
}
const extraHeaders: Record<string, Object> = {
  "401": { "WWW-Authenticate": header("How to authenticate") },
  "429": { "Retry-After": header("Seconds to wait before the next request", "integer") },
  "503": { "Retry-After": header("Seconds to wait before the next request", "integer") }
}

const isCode = (value: Json): value is Code => typeof value === "string" && Object.hasOwn(codes, value)

const problemExample = (code: Code): Json => {
  const [status, title] = codes[code]
  return {
    value: { type: `/v1/docs/errors/${code}`, title, status, detail: `${title}.`, code, requestId: "req_01jz0000000000000000000000" }
  }
}

/** The names of a problem's schema, or of a choice of them. */
const namesOf = (schema: Json): ReadonlyArray<string> => {
  const anyOf = object(schema)["anyOf"]
  return (anyOf === undefined ? [schema] : list(anyOf)).flatMap((one) => refOf(one) ?? [])
}

/** The schema of a response that has one media type. */
const schemaOf = (response: Json): Json => object(Object.values(object(object(response)["content"]))[0])["schema"] ?? {}

/** Responses of a document. `get` finds its schemas, and those of problems as the contract has them. */
export class Responses {
  /** Those other than 2xx by name: many operations share one. */
  readonly shared: Record<string, Json> = {}
  readonly #get: (name: string) => Object

  constructor(get: (name: string) => Object) {
    this.#get = get
  }

  /** The responses of an operation. */
  readonly of = (responses: Object): Object =>
    mapValues(responses, (one, status) => (status.startsWith("2") ? this.#success(one) : this.#problem(one, status)))

  /** The codes of an operation by status, in a sentence. */
  readonly errorsOf = (responses: Object): string => {
    const problems = Object.entries(responses).filter(([status]) => !status.startsWith("2"))
    const written = problems.map(
      ([status, one]) =>
        `${status} ${this.#codesOf(schemaOf(one))
          .map((code) => `\`${code}\``)
          .join(", ")}`
    )
    return `Errors: ${written.join("; ")}.`
  }

  readonly #codesOf = (schema: Json): ReadonlyArray<Code> =>
    namesOf(schema).flatMap((name) => {
      const code = object(object(this.#get(name)["properties"])["code"])
      return list(code["x-extensible-enum"]).filter(isCode)
    })

  readonly #success = (response: Json): Json => {
    const content = object(object(response)["content"])
    if (Object.keys(content).length === 0) return { description: "Success, without a body", headers }
    return { description: "Success", headers, content: mapValues(content, (media) => withExample(media, this.#get)) }
  }

  /** A reference to the response, which describes its codes in words. */
  readonly #problem = (response: Json, status: string): Json => {
    const schema = schemaOf(response)
    const found = this.#codesOf(schema)
    const name = `${[...namesOf(schema)].sort().join("Or")}Response`
    this.shared[name] ??= {
      description: `${found.map((code) => codes[code][1]).join(". ")}.`,
      headers: { ...headers, ...extraHeaders[status] },
      content: {
        "application/problem+json": {
          schema: refTo("Problem"),
          examples: Object.fromEntries(found.map((code) => [code, problemExample(code)]))
        }
      }
    }
    return { $ref: `#/components/responses/${name}` }
  }
}
