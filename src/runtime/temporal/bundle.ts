/** The workflow code as one bundle. Bundling takes seconds, so the bundle is kept by the hash of the workflow sources and the SDK's version. */
import * as fs from "node:fs"
import * as path from "node:path"
import { bundleWorkflowCode } from "@temporalio/worker"
import sdk from "@temporalio/worker/package.json" with { type: "json" }
import { Effect } from "effect"
import { DIST, hashOf, keep, kept, root } from "../builtFiles.ts"

const sources = path.join(root, "workflows")

const nameOf = () => {
  const files = fs.readdirSync(sources).filter((file) => file.endsWith(".ts"))
  return `workflows-${hashOf(
    sdk.version,
    files.sort().map((file) => path.join(sources, file))
  )}.js`
}

const make = () =>
  bundleWorkflowCode({
    workflowsPath: path.join(sources, "index.ts"),
    logger: {
      log: () => {},
      trace: () => {},
      debug: () => {},
      info: () => {},
      warn: () => {},
      error: (message) => process.stderr.write(`${message}\n`)
    }
  })

/** The bundle's code, created if it is not kept. `cache` is used if nothing else is writable. */
export const bundle = (cache: string) =>
  Effect.gen(function* () {
    const name = nameOf()
    const file = kept(name, cache)
    if (file !== undefined) return { code: fs.readFileSync(file, "utf8") }
    const { code } = yield* Effect.promise(make)
    yield* Effect.sync(() => keep(name, { cache }, (to) => fs.writeFileSync(to, code)))
    return { code }
  })

// `bun run build`.
if (import.meta.main) {
  const { code } = await make()
  keep(nameOf(), "dist", (to) => fs.writeFileSync(to, code))
  process.stdout.write(`${path.join(DIST, nameOf())}\n`)
}
