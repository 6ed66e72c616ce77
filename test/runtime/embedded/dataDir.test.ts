/** DATA_DIR as in the container: a directory of another owner that everyone can write to. */
import { afterAll, expect, test } from "bun:test"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "../../..")
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-data-dir-"))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Creates the data directory as another user; modules are loaded before, because that user may not read them. */
const script = `
  import { ConfigProvider, Effect, Layer } from "effect"
  import { DataDir } from "./src/runtime/embedded/DataDir.ts"
  import { Settings } from "./src/runtime/settings/Settings.ts"
  process.setgid(65534)
  process.setuid(65534)
  process.umask(0o077)
  const settings = Layer.provide(Settings.layer, Layer.setConfigProvider(ConfigProvider.fromMap(new Map([["DATA_DIR", ${JSON.stringify(folder)}]]))))
  const program = Effect.scoped(Effect.flatMap(DataDir, (dir) => Effect.zipRight(dir.pidFile("api"), Effect.sync(() => dir.secret("a-key", () => "secret")))))
  await Effect.runPromise(Effect.provide(program, Layer.provide(DataDir.Default, settings)))
`

// Only root can become another user.
test.skipIf(process.getuid?.() !== 0)("a folder of another owner is used unchanged, and new files are private", () => {
  fs.chmodSync(folder, 0o1777)
  fs.writeFileSync(path.join(folder, "theirs"), "", { mode: 0o644 })
  const { status, stderr } = spawnSync(process.execPath, ["-e", script], { cwd: root, encoding: "utf8" })
  expect([status, stderr]).toEqual([0, ""])
  const modes = Object.fromEntries(
    fs.readdirSync(folder).map((name) => [name, (fs.statSync(path.join(folder, name)).mode & 0o777).toString(8)])
  )
  expect(modes).toEqual({ theirs: "644", run: "700", "a-key": "600" })
  expect((fs.statSync(folder).mode & 0o1777).toString(8)).toBe("1777")
})
