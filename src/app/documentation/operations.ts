/** The operations of the OpenAPI document, for the search and for the first view of the reference. */

import { object } from "../openapi/json.ts"
import { documentAt } from "../openapi/OpenApi.ts"

const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** Each operation with the link by which the reference opens it. */
export const operations = Object.entries(object(documentAt("/")["paths"])).flatMap(([path, item]) =>
  Object.entries(object(item)).map(([method, value]) => {
    const { description, summary, tags } = object(value)
    const tag = Array.isArray(tags) ? text(tags[0]) : ""
    return {
      method: method.toUpperCase(),
      path,
      summary: text(summary),
      description: text(description),
      href: `/v1/docs#tag/${tag.toLowerCase().replaceAll(" ", "-")}/${method}${path}`
    }
  })
)
