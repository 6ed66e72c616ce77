/** `custody organizations`: the export and the deletion of one organization. Results are JSON on standard output. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import { base } from "./base.ts"

const running = Effect.promise(() => import("./run/organizations.ts"))
const id = Args.text({ name: "id" }).pipe(Args.withDescription("id of the organization, org_…"))
const file = Args.text({ name: "file" }).pipe(Args.withDescription("the file to write, which only its owner can read"))

const exported = Command.make("export", { id, file }, ({ file, id }) => Effect.flatMap(running, ({ exportTo }) => exportTo(id, file))).pipe(
  Command.withDescription(
    "Write everything of an organization to an NDJSON file, without secrets. Custody data is in the form that `custody load` reads."
  ),
  Command.provide(base)
)

const deleted = Command.make("delete", { id }, ({ id }) => Effect.flatMap(running, ({ remove }) => remove(id))).pipe(
  Command.withDescription(
    "Delete everything of an organization except its audit log. Asks for the id again, or reads it from standard input. If it is interrupted, another run finishes it."
  ),
  Command.provide(base)
)

export const organizations = Command.make("organizations").pipe(
  Command.withDescription("Export or delete an organization with all its data."),
  Command.withSubcommands([exported, deleted])
)
