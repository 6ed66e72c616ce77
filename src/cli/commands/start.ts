/** `custody start` and `custody migrate`. */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Effect } from "effect"
import { type Role, roles } from "../../runtime/settings/roles.ts"
import { base } from "./base.ts"
import { Usage, untilInterrupted } from "./exit.ts"

const isRole = (text: string): text is Role => roles.some((role) => role === text)

const wanted = Options.text("roles").pipe(
  Options.withDescription(
    "roles of this process, comma-separated: api, worker, dispatcher; all by default. Roles can run on different machines"
  ),
  Options.withDefault(roles.join(","))
)

export const start = Command.make(
  "start",
  {
    roles: wanted,
    noMigrate: Options.boolean("no-migrate").pipe(Options.withDescription("do not apply database migrations"))
  },
  (given) =>
    Effect.gen(function* () {
      const names = given.roles.split(",").map((name) => name.trim())
      const unknown = names.find((name) => !isRole(name))
      if (unknown !== undefined)
        return yield* new Usage({ message: `--roles: “${unknown}” is not a role; the roles are ${roles.join(", ")}.` })
      const { start: run } = yield* Effect.promise(() => import("../../app/App.ts"))
      yield* untilInterrupted(run([...new Set(names.filter(isRole))], { migrate: !given.noMigrate }))
    })
).pipe(Command.withDescription("Run the service until it is interrupted."), Command.provide(base))

export const migrate = Command.make("migrate", {}, () =>
  Effect.flatMap(
    Effect.promise(() => import("./run/migrate.ts")),
    ({ migrate }) => migrate
  )
).pipe(Command.withDescription("Apply database migrations and exit."), Command.provide(base))
