/**
 * Finds the Temporal server: `temporal` on PATH, `DATA_DIR/bin/temporal`, the official download for the platform, or `go
 * install` if Go is present. The last two store the binary in `DATA_DIR/bin`.
 */

import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Console, Data, Duration, Effect, Schedule } from "effect"
import { DataDir } from "./DataDir.ts"
import { EmbeddedServerError } from "./Process.ts"

/** The newest version that `go install` can build: later ones carry a replace directive. */
const VERSION = "1.5.1"
/** SHA-256 of the release's archives by platform and architecture. They belong to {@link VERSION}. */
const CHECKSUMS: { readonly [archive: string]: string } = {
  linux_amd64: "ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d",
  linux_arm64: "bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5",
  darwin_amd64: "bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9",
  darwin_arm64: "cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415"
}
const MODULE = `github.com/temporalio/cli/cmd/temporal@v${VERSION}`

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Prints every few seconds that a long step is still running. */
const withProgress =
  (what: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const startedAt = Date.now()
      yield* Console.error(`${what} …`)
      const tick = Effect.suspend(() => Console.error(`${what} … ${Math.round((Date.now() - startedAt) / 1000)} s`))
      yield* Effect.forkScoped(Effect.schedule(tick, Schedule.spaced("15 seconds")))
      return yield* effect
    }).pipe(Effect.scoped)

/** Names of platforms and architectures in the releases. */
const platforms: { readonly [platform: string]: string } = { linux: "linux", darwin: "darwin" },
  architectures: { readonly [architecture: string]: string } = { x64: "amd64", arm64: "arm64" }

/** The download differs from the release: it is not run, and no other source is tried. */
export class ChecksumMismatch extends Data.TaggedError("ChecksumMismatch")<{ readonly message: string }> {}

/** Rejects an archive whose checksum differs from the pinned one. */
export const verify = (archive: string, bytes: Uint8Array): Effect.Effect<void, ChecksumMismatch> => {
  const expected = CHECKSUMS[archive]
  const found = createHash("sha256").update(bytes).digest("hex")
  return found === expected
    ? Effect.void
    : new ChecksumMismatch({
        message:
          `The download of the Temporal server for ${archive} has the SHA-256 ${found}, expected ${expected ?? "none that is known"}. ` +
          "It was not installed: it may have been tampered with. Put the `temporal` CLI on PATH (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS."
      })
}

const download = (target: string) =>
  Effect.gen(function* () {
    const platform = platforms[os.platform()],
      arch = architectures[os.arch()]
    if (platform === undefined || arch === undefined) return yield* Effect.fail(`there is no release for ${os.platform()}-${os.arch()}`)
    const url = `https://github.com/temporalio/cli/releases/download/v${VERSION}/temporal_cli_${VERSION}_${platform}_${arch}.tar.gz`
    const bytes = yield* Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(url, { signal })
        if (!response.ok) throw new Error(`HTTP status ${response.status}`)
        return new Uint8Array(await response.arrayBuffer())
      },
      catch: messageOf
    }).pipe(Effect.timeoutFail({ duration: Duration.minutes(3), onTimeout: () => "it took longer than 3 minutes" }))
    yield* verify(`${platform}_${arch}`, bytes)
    yield* Effect.tryPromise({
      try: async () => {
        const files = [...(await new Bun.Archive(bytes).files())]
        const [, program] = files.find(([name]) => path.basename(name) === "temporal") ?? []
        if (program === undefined) throw new Error("the archive does not contain it")
        await Bun.write(target, program)
      },
      catch: messageOf
    })
  }).pipe(withProgress("Downloading the Temporal server"))

const goInstall = (target: string) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "temporal-"))
  return Effect.tryPromise({
    try: async (signal) => {
      const env = { ...process.env, GOBIN: folder }
      const child = Bun.spawn(["go", "install", MODULE], { env, signal, stdout: "ignore", stderr: "pipe" })
      const [output, code] = await Promise.all([child.stderr.text(), child.exited])
      if (code !== 0) throw new Error(output.trim().slice(-4_000) || `exit code ${code}`)
      fs.copyFileSync(path.join(folder, "temporal"), target)
    },
    catch: messageOf
  }).pipe(
    Effect.ensuring(Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))),
    withProgress("Building the Temporal server with Go (once; takes a few minutes)")
  )
}

/** The path of a Temporal server, downloaded or built if there is none yet. */
export const find = Effect.gen(function* () {
  const dataDir = yield* DataDir
  const onPath = Bun.which("temporal")
  if (onPath !== null) return onPath
  const kept = dataDir.at("bin", "temporal")
  if (fs.existsSync(kept)) return kept
  fs.mkdirSync(path.dirname(kept), { recursive: true })
  const fresh = `${kept}.${process.pid}`
  yield* download(fresh).pipe(
    Effect.catchAll((why) =>
      Effect.gen(function* () {
        if (typeof why !== "string") return yield* new EmbeddedServerError({ message: why.message })
        yield* Console.error(`The official download is not reachable: ${why}.`)
        if (Bun.which("go") === null) return yield* Effect.fail("Go is not installed")
        yield* goInstall(fresh)
      })
    ),
    Effect.mapError((why) =>
      typeof why !== "string"
        ? why
        : new EmbeddedServerError({
            message:
              `There is no Temporal server on this machine, and none could be downloaded or built: ${why}. ` +
              `Put the \`temporal\` CLI on PATH (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS to a running cluster.`
          })
    )
  )
  fs.chmodSync(fresh, 0o700)
  fs.renameSync(fresh, kept)
  return kept
})
