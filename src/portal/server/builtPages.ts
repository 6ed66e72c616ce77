/**
 * The built pages of the portal: scripts, styles and fonts in a folder, with a manifest. They are built ahead by `bun run build`;
 * otherwise by a process of its own when somebody first opens the portal, so that the serving process never loads a bundler.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect, Schema } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { hashOf, kept, root } from "../../runtime/builtFiles.ts"

/** Encodings of a file besides its own bytes, with the ends of their names. */
export const encodings = { br: ".br", gzip: ".gz" } as const
export type Encoding = keyof typeof encodings

/** What a build consists of; names are those of the folder's files. */
export const Manifest = Schema.Struct({
  entry: Schema.String,
  /** Scripts that the entry imports statically, preloaded by the document. */
  imports: Schema.Array(Schema.String),
  styles: Schema.Array(Schema.String),
  fonts: Schema.Array(Schema.String),
  /** Every file with its media type and encodings. */
  files: Schema.Record({
    key: Schema.String,
    value: Schema.Struct({ type: Schema.String, encodings: Schema.Array(Schema.Literal("br", "gzip")) })
  })
})
export type Manifest = typeof Manifest.Type
export const MANIFEST = "manifest.json"

const decodeManifest = Schema.decodeUnknown(Schema.parseJson(Manifest))

/** The folder's name, with the hash of the pages, of the modules of the program that they use, and of the packages' versions. */
export const nameOf = (): string => {
  const files = ["src/portal/web/**/*.{ts,tsx,css}", "src/client/*.ts", "src/values/*.ts"].flatMap((pattern) => [
    ...new Bun.Glob(pattern).scanSync({ cwd: root })
  ])
  return `portal-${hashOf(
    JSON.stringify(packageJson.dependencies),
    files.sort().map((file) => path.join(root, file))
  )}`
}

/** A build: its manifest, and the content of a file by name and encoding. */
export interface Pages extends Manifest {
  readonly contentOf: (name: string, encoding?: Encoding) => Blob
}

/** Builds in a process of its own, which ends with the caller. */
const build = (cache: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() =>
      Bun.spawn([process.execPath, path.join(import.meta.dir, "buildPages.ts"), cache], { stdin: "pipe", stdout: "ignore", stderr: "pipe" })
    ),
    (built) =>
      Effect.tryPromise(async () => {
        const [said, code] = await Promise.all([new Response(built.stderr).text(), built.exited])
        if (code !== 0) throw new Error(said)
      }),
    (built) => Effect.sync(() => built.kill("SIGKILL"))
  )

/** The pages, built if they are not kept. `cache` is used if nothing else is writable. */
export const pages = (cache: string) =>
  Effect.gen(function* () {
    const name = nameOf()
    if (kept(name, cache) === undefined) yield* build(cache)
    const folder = kept(name, cache) ?? path.join(cache, name)
    const manifest = yield* decodeManifest(yield* Effect.try(() => fs.readFileSync(path.join(folder, MANIFEST), "utf8")))
    const loaded = new Map<string, Blob>()
    const found: Pages = {
      ...manifest,
      contentOf: (name, encoding) => {
        const file = `${name}${encoding === undefined ? "" : encodings[encoding]}`
        const content = loaded.get(file) ?? new Blob([fs.readFileSync(path.join(folder, file))])
        loaded.set(file, content)
        return content
      }
    }
    return found
  })
