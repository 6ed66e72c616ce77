/** The typed search attributes for operators; registered at startup if the namespace lacks them. */
import { temporal } from "@temporalio/proto"
import { Effect } from "effect"
import { searchKeys } from "../../workflows/contract.ts"
import type { Connected } from "./Connection.ts"

const { INDEXED_VALUE_TYPE_KEYWORD, INDEXED_VALUE_TYPE_KEYWORD_LIST } = temporal.api.enums.v1.IndexedValueType

const types = { KEYWORD: INDEXED_VALUE_TYPE_KEYWORD, KEYWORD_LIST: INDEXED_VALUE_TYPE_KEYWORD_LIST } as const

/** Registers missing attributes. If the cluster does not allow it (Temporal Cloud), this fails and an operator has to. */
export const register = ({ client }: Connected, namespace: string) =>
  Effect.gen(function* () {
    const { operatorService } = client.connection
    const known = yield* Effect.tryPromise(() => operatorService.listSearchAttributes({ namespace }))
    const missing = Object.values(searchKeys).filter(({ name }) => known.customAttributes?.[name] === undefined)
    if (missing.length === 0) return
    yield* Effect.tryPromise(() =>
      operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map(({ name, type }) => [name, types[type]]))
      })
    )
    yield* Effect.logInfo(`registered search attributes: ${missing.map(({ name }) => name).join(", ")}`)
  })
