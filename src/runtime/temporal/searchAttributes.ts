/** The typed search attributes for operators; registered at startup if the namespace lacks them. */
import { temporal } from "@temporalio/proto"
import { Effect } from "effect"
import { searchKeys } from "../../../workflows/contract.ts"
import type { Connected } from "./Connection.ts"
import { temporalCall } from "./temporalCall.ts"

const { INDEXED_VALUE_TYPE_KEYWORD, INDEXED_VALUE_TYPE_KEYWORD_LIST } = temporal.api.enums.v1.IndexedValueType

/** The types of search attributes by their names in the SDK: as the API has them, and as the `temporal` CLI spells them. */
const types = {
  KEYWORD: { value: INDEXED_VALUE_TYPE_KEYWORD, cli: "Keyword" },
  KEYWORD_LIST: { value: INDEXED_VALUE_TYPE_KEYWORD_LIST, cli: "KeywordList" }
} as const

/** A search attribute: its name, its type as the API has it (`value`), and its type as the `temporal` CLI spells it. */
export interface SearchAttribute {
  readonly name: string
  readonly value: temporal.api.enums.v1.IndexedValueType
  readonly type: string
}

/** Every search attribute that workflows set. */
export const searchAttributes: ReadonlyArray<SearchAttribute> = Object.values(searchKeys).map(({ name, type }) => ({
  name,
  value: types[type].value,
  type: types[type].cli
}))

/** Those that a namespace lacks; `registered` holds its custom attributes by name, as the API lists them. */
export const missingIn = (registered: Readonly<Record<string, unknown>> | null | undefined): ReadonlyArray<SearchAttribute> =>
  searchAttributes.filter(({ name }) => registered?.[name] === undefined)

/** Registers missing attributes. If the cluster does not allow it (Temporal Cloud), this fails and an operator has to. */
export const register = ({ client }: Connected, namespace: string) =>
  Effect.gen(function* () {
    const { operatorService } = client.connection
    const known = yield* temporalCall(() => operatorService.listSearchAttributes({ namespace }))
    const missing = missingIn(known.customAttributes)
    if (missing.length === 0) return
    yield* temporalCall(() =>
      operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map(({ name, value }) => [name, value]))
      })
    )
    yield* Effect.logInfo(`registered search attributes: ${missing.map(({ name }) => name).join(", ")}`)
  })
