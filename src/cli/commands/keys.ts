/** `custody keys`: API keys from the command line, against the same database as the service. Results are JSON on standard output. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Effect, Option } from "effect"
import { base } from "./base.ts"

const running = Effect.promise(() => import("./run/keys.ts"))

const list = (text: string) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
const commaSeparated = (name: string, description: string) =>
  Options.text(name).pipe(Options.withDescription(description), Options.map(list), Options.optional)

const scopes = commaSeparated("scopes", "vault:read, webhook:read, webhook:manage; comma-separated")
const vaults = commaSeparated("vaults", "vault allowlist, comma-separated; the user needs the Developer role on each vault")
const allVaults = Options.boolean("all-vaults").pipe(
  Options.withDescription("allow every vault on which the user has the Developer role, now and in the future")
)
const ips = commaSeparated("ips", "CIDRs from which the key may be used, comma-separated; unrestricted if omitted")
const expires = Options.text("expires").pipe(
  Options.withDescription("90d, an ISO date-time, or never; new keys expire after 365d by default"),
  Options.optional
)
const label = Options.text("label").pipe(Options.withDescription("label of the key"), Options.optional)
const id = Args.text({ name: "id" }).pipe(Args.withDescription("id of the key, key_…"))
const choice = { scopes, vaults, allVaults, ips, expires, label }

const create = Command.make(
  "create",
  { user: Options.text("user").pipe(Options.withDescription("id of the user who owns the key")), ...choice },
  ({ user, ...given }) => Effect.flatMap(running, ({ create }) => create(user, given))
).pipe(Command.withDescription("Create a key and print its secret, which is shown only once."), Command.provide(base))

const listed = Command.make(
  "list",
  {
    user: Options.text("user").pipe(Options.withDescription("only this user's keys"), Options.optional)
  },
  ({ user }) => Effect.flatMap(running, ({ list }) => list(Option.getOrUndefined(user)))
).pipe(Command.withDescription("List keys, newest first, without secrets."), Command.provide(base))

const update = Command.make(
  "update",
  { id, ...choice, noIps: Options.boolean("no-ips").pipe(Options.withDescription("remove the IP allowlist")) },
  ({ id, ...given }) => Effect.flatMap(running, ({ update }) => update(id, given))
).pipe(Command.withDescription("Edit a key; omitted options stay unchanged."), Command.provide(base))

const revoke = Command.make("revoke", { id }, ({ id }) => Effect.flatMap(running, ({ revoke }) => revoke(id))).pipe(
  Command.withDescription("Revoke a key immediately."),
  Command.provide(base)
)

export const keys = Command.make("keys").pipe(
  Command.withDescription("Create, list, edit and revoke API keys."),
  Command.withSubcommands([create, listed, update, revoke])
)
