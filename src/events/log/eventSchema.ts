/** The published JSON Schema of each kind's envelope. Decision D-18. */
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import { schemaOf } from "./Envelope.ts"
import type { Kind } from "./Kind.ts"

/** The schema of a kind's envelope, with the schemas that it refers to under `components`. */
export const eventSchema = (kind: Kind) => {
  const schemas = {}
  return {
    ...OpenApiJsonSchema.makeWithDefs(schemaOf(kind), { defs: schemas, additionalPropertiesStrategy: "allow" }),
    components: { schemas }
  }
}
