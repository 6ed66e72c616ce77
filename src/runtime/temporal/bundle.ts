/**
 * The workflow code as one bundle. Bundling takes seconds, so the bundle is cached by the hash of the workflow sources
 * and the SDK's version: in `dist/` (created by `bun run bundle` for an image), beside the dependencies, or in
 * `DATA_DIR/cache` if neither is writable.
 */

import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { bundleWorkflowCode } from "@temporalio/worker"
import sdk from "@temporalio/worker/package.json" with { type: "json" }
import { Effect } from "effect"

const root = path.resolve(import.meta.dir, "../../..")
const sources = path.join(root, "workflows")

/** The hash of these sources. */
const bundleHash = (): string => {
  const hash = createHash("sha256").update(sdk.version)
  for (const file of fs.readdirSync(sources).sort())
    if (file.endsWith(".ts")) hash.update(file).update(fs.readFileSync(path.join(sources, file)))
  return hash.digest("hex").slice(0, 16)
}

const nameOf = () => `workflows-${bundleHash()}.js`
const built = path.join(root, "dist")
const beside = path.join(root, "node_modules", ".cache", "custody")

/** Stores the code in the first writable directory. */
const keep = (name: string, code: string, folders: ReadonlyArray<string>) => {
  for (const folder of folders) {
    try {
      fs.mkdirSync(folder, { recursive: true })
      fs.writeFileSync(path.join(folder, `${name}.${process.pid}`), code)
      fs.renameSync(path.join(folder, `${name}.${process.pid}`), path.join(folder, name))
      return
    } catch {
      // The directory is not writable, as in an image; the next one may be.
    }
  }
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

/** The bundle's code, created if it is not cached. `folder` is used if nothing else is writable. */
export const bundle = (folder: string) =>
  Effect.gen(function* () {
    const name = nameOf()
    const kept = [built, beside, folder].map((at) => path.join(at, name)).find((file) => fs.existsSync(file))
    if (kept !== undefined) return { code: fs.readFileSync(kept, "utf8") }
    const { code } = yield* Effect.promise(make)
    yield* Effect.sync(() => keep(name, code, [beside, folder]))
    return { code }
  })

// `bun run bundle`: for an image, where nothing is written later.
if (import.meta.main) {
  // Without `await`, which the tests' bundle of the program cannot have (test/support/program.ts).
  void make().then(({ code }) => {
    keep(nameOf(), code, [built])
    process.stdout.write(`${path.join("dist", nameOf())}\n`)
  })
}
