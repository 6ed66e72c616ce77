/**
 * Finds the Temporal server: `temporal` on PATH, `DATA_DIR/bin/temporal`, the official download for the platform, or `go
 * install` if Go is present. The last two store the binary in `DATA_DIR/bin`.
 */

import { spawn } from "node:child_process"
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

const run = (command: string, args: ReadonlyArray<string>, env: Record<string, string> = {}): Effect.Effect<string, string> =>
  Effect.async((resume) => {
    const child = spawn(command, [...args], { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] })
    let output = ""
    child.stderr.on("data", (chunk) => {
      output = `${output}${chunk}`.slice(-4_000)
    })
    child.on("error", (error) => resume(Effect.fail(error.message)))
    child.on("exit", (code) => resume(code === 0 ? Effect.succeed(output) : Effect.fail(output.trim() || `exit code ${code}`)))
    return Effect.sync(() => child.kill())
  })

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
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "temporal-"))
    yield* Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(url, { signal })
        if (!response.ok) throw new Error(`HTTP status ${response.status}`)
        return new Uint8Array(await response.arrayBuffer())
      },
      catch: (error) => (error instanceof Error ? error.message : String(error))
    }).pipe(
      Effect.timeoutFail({ duration: Duration.minutes(3), onTimeout: () => "it took longer than 3 minutes" }),
      Effect.tap((bytes) => verify(`${platform}_${arch}`, bytes)),
      Effect.flatMap((bytes) => Effect.promise(() => Bun.write(path.join(folder, "temporal.tar.gz"), bytes))),
      Effect.zipRight(run("tar", ["-xzf", path.join(folder, "temporal.tar.gz"), "-C", folder])),
      Effect.zipRight(Effect.sync(() => fs.copyFileSync(path.join(folder, "temporal"), target))),
      Effect.ensuring(Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true })))
    )
  }).pipe(withProgress("Downloading the Temporal server"))

const goInstall = (target: string) =>
  Effect.gen(function* () {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "temporal-"))
    yield* run("go", ["install", MODULE], { GOBIN: folder }).pipe(
      Effect.zipRight(Effect.sync(() => fs.copyFileSync(path.join(folder, "temporal"), target))),
      Effect.ensuring(Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true })))
    )
  }).pipe(withProgress("Building the Temporal server with Go (once; takes a few minutes)"))

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
