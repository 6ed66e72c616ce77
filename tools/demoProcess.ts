/** The demo as a separate process, for tools that make pictures of it. */
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "..")
const PORTS = ["PLATFORM_PORT", "EMBEDDED_POSTGRES_PORT", "EMBEDDED_TEMPORAL_PORT", "EMBEDDED_TEMPORAL_UI_PORT"]

/** The environment of a demo in a folder, on free ports except for that of the API. */
export const demoEnv = (folder: string, port = 0): Record<string, string | undefined> => ({
  ...process.env,
  ...Object.fromEntries(PORTS.map((name) => [name, "0"])),
  PORT: String(port),
  DATA_DIR: folder
})

/** Starts a demo. `printed` resolves with its output once it contains `count` matches of the pattern, which is global. */
export const startDemo = (env: Record<string, string | undefined>) => {
  const child = Bun.spawn([process.execPath, "src/main.ts", "demo"], { cwd: root, env, stdin: "ignore", stdout: "pipe", stderr: "inherit" })
  let output = "",
    ended = false
  let changed = () => {}
  const read = async () => {
    // Read to its end: a demo whose output is not read blocks.
    for await (const chunk of child.stdout) {
      output += Buffer.from(chunk).toString()
      changed()
    }
    ended = true
    changed()
  }
  void read()
  return {
    printed: (pattern: RegExp, count = 1) =>
      new Promise<string>((resolve, reject) => {
        changed = () => {
          if ((output.match(pattern) ?? []).length >= count) resolve(output)
          else if (ended) reject(new Error(`The demo ended:\n${output}`))
        }
        changed()
      }),
    stop: async () => {
      child.kill("SIGINT")
      await child.exited
    }
  }
}
