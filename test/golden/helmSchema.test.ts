import { expect, test } from "bun:test"
import type { Setting } from "../../src/runtime/settings/readers.ts"
import { table } from "../../src/runtime/settings/table.ts"
import { documentText, documentWhole } from "../support/document.ts"
import { pretty } from "../support/golden.ts"

/** Settings that the image or the chart decides. */
export const decided = /^(HOST|PORT|PLATFORM_HOST|PLATFORM_PORT|DATA_DIR|EMBEDDED_\w+|LOG_FORMAT)$/

/** The schema of a value that has this default. */
const schemaOf = (value: unknown): object => {
  if (Array.isArray(value)) return { type: "array" }
  if (typeof value !== "object" || value === null) return { type: typeof value === "number" ? "integer" : typeof value }
  const properties = Object.entries(value).map(([name, one]) => [name, name === "resources" ? { type: "object" } : schemaOf(one)])
  return properties.length === 0
    ? { type: "object" }
    : { type: "object", properties: Object.fromEntries(properties), additionalProperties: false }
}

test("the Helm chart's values have a schema of values.yaml and the program's settings", () => {
  const values = Bun.YAML.parse(documentText("deploy/helm/values.yaml")) as { readonly [name: string]: unknown }
  const settings: ReadonlyArray<Setting<unknown>> = Object.values(table)
  const allowed = settings.filter(({ name, secret }) => !secret && !decided.test(name))
  const properties = Object.entries(values).map(([name, value]) => [
    name,
    name === "settings"
      ? {
          type: "object",
          properties: Object.fromEntries(allowed.map(({ meaning, name }) => [name, { type: "string", description: meaning }])),
          additionalProperties: false
        }
      : schemaOf(value)
  ])
  documentWhole(
    "deploy/helm/values.schema.json",
    pretty({
      $schema: "http://json-schema.org/draft-07/schema#",
      $comment: "Made from values.yaml and src/runtime/settings/table.ts by `bun run golden`.",
      type: "object",
      // Helm adds `global` itself.
      properties: { ...Object.fromEntries(properties), global: { type: "object" } },
      additionalProperties: false
    })
  )
})

test("the Helm chart scales to no more workers than have a share of each webhook", () => {
  const { worker } = Bun.YAML.parse(documentText("deploy/helm/values.yaml")) as {
    readonly worker: { readonly autoscaling: { readonly maxReplicas: number } }
  }
  expect(worker.autoscaling.maxReplicas).toBeLessThanOrEqual(Number(table.webhookMaxInFlight.fallback))
})
