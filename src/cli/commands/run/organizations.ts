/** Implementation of `custody organizations`. Decision D-56. */
import * as readline from "node:readline/promises"
import * as SqlClient from "@effect/sql/SqlClient"
import { Console, Effect, Layer, Schema } from "effect"
import { deleteOrganization } from "../../../access/organizations/deleteOrganization.ts"
import { exportOrganization } from "../../../access/organizations/exportOrganization.ts"
import { UnknownOrganization } from "../../../access/organizations/organizationTables.ts"
import { commandDatabase } from "../../../app/Base.ts"
import { masterKeyLayer } from "../../../runtime/crypto/MasterKey.ts"
import { decodeRows } from "../../../runtime/database/decodeRows.ts"
import * as EmbeddedTemporal from "../../../runtime/embedded/Temporal.ts"
import { Settings } from "../../../runtime/settings/Settings.ts"
import { TemporalAddress, TemporalConnection, TemporalUnavailable } from "../../../runtime/temporal/Connection.ts"
import { Usage } from "../exit.ts"

/** Shows progress on a terminal. */
const show = (text: string) => {
  if (process.stderr.isTTY) process.stderr.write(`\r${text}\u001b[K`)
}

/** Exports the organization and prints counts. */
export const exportTo = (id: string, file: string) =>
  Effect.gen(function* () {
    const exported = yield* exportOrganization(id, file, (lines) => show(`${lines} lines`))
    show("")
    yield* Console.log(JSON.stringify(exported, null, 2))
  }).pipe(Effect.provide(commandDatabase), Effect.scoped)

/** One line of standard input; asks for it on a terminal. */
const line = (question: string) =>
  Effect.promise(async (signal) => {
    const input = readline.createInterface({ input: process.stdin, output: process.stderr, terminal: process.stdin.isTTY })
    try {
      if (process.stdin.isTTY) return await input.question(question, { signal })
      for await (const one of input) return one
      return ""
    } finally {
      input.close()
    }
  })

const temporalAddress = Layer.scoped(
  TemporalAddress,
  Effect.flatMap(Settings, ({ temporalAddress, temporalUiUrl }) =>
    temporalAddress === undefined ? EmbeddedTemporal.acquire : Effect.succeed({ address: temporalAddress, ui: temporalUiUrl })
  )
)

const decodeNames = decodeRows(Schema.Struct({ name: Schema.String }))

/** Asks for the id again, deletes the organization and prints counts. */
export const remove = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [organization] = yield* decodeNames(sql`SELECT name FROM organizations WHERE id = ${id}`)
    if (organization === undefined) return yield* new UnknownOrganization({ organizationId: id })
    const given = yield* line(`Everything of ${id} (${organization.name}) will be deleted, except its audit log. Enter its id to confirm: `)
    if (given.trim() !== id) return yield* new Usage({ message: `The id that was entered is not ${id}. Nothing was deleted.` })
    const temporal = yield* TemporalConnection
    yield* Effect.timeoutFail(temporal.ready, {
      duration: "15 seconds",
      onTimeout: () =>
        new TemporalUnavailable({
          message: "Temporal cannot be reached, and the organization's workflows must be terminated first. Nothing was deleted."
        })
    })
    const deleted = yield* deleteOrganization(id, (table, rows) => show(`${table}: ${rows}`))
    show("")
    yield* Console.log(JSON.stringify(deleted, null, 2))
  }).pipe(
    Effect.provide(TemporalConnection.Default.pipe(Layer.provide([temporalAddress, masterKeyLayer]))),
    Effect.provide(commandDatabase),
    Effect.scoped
  )
