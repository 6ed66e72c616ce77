/**
 * `custody listen`: prints the event feed of any deployment on a developer's screen, and posts each event to their server
 * like a delivery. It uses only the public API. C-1.
 */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Effect, Option } from "effect"
import { untilInterrupted } from "./exit.ts"
import { api, key } from "./remote.ts"

const options = {
  api,
  key: key("webhook:read"),
  forwardTo: Options.text("forward-to").pipe(
    Options.withDescription("post each event to this URL, such as http://localhost:3000/hook"),
    Options.optional
  ),
  kinds: Options.text("kind").pipe(Options.withDescription("only events of this kind; may be given several times"), Options.repeated),
  vaults: Options.text("vault").pipe(Options.withDescription("only events of this vault; may be given several times"), Options.repeated),
  from: Options.text("from").pipe(
    Options.withDescription("where to begin: now (default), oldest, or the resumeCursor of an event"),
    Options.withDefault("now")
  ),
  secret: Options.text("secret").pipe(
    Options.withDescription("signing secret (whsec_…) for posted events; by default one that is kept in your configuration folder"),
    Options.optional
  ),
  sample: Options.text("sample").pipe(
    Options.withDescription("post one sample event of this kind and exit; its ids name nothing, and amounts are 0"),
    Options.optional
  ),
  json: Options.boolean("json").pipe(
    Options.withDescription("print one JSON object per event and repeated post, and everything else on standard error")
  ),
  allowPublic: Options.boolean("allow-public").pipe(Options.withDescription("also post to public addresses"))
}

export const listen = Command.make("listen", options, (given) =>
  Effect.flatMap(
    Effect.promise(() => import("./run/listen.ts")),
    ({ listen }) => (Option.isSome(given.sample) ? listen(given) : untilInterrupted(listen(given)))
  )
).pipe(Command.withDescription("Follow the events of a deployment, and optionally post them to your server."))
