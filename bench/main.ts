/**
 * `bun run bench [name …] [--quick]`: benchmarks, each with its floor in the same run. Each runs in a separate process and
 * data folder, prints its report as JSON and as a table, and ends by itself. Without a name, all of them run.
 */
import * as path from "node:path"
import { asked, options } from "./support/options.ts"

const names = [...new Bun.Glob("*.ts").scanSync(import.meta.dir)]
  .map((file) => path.basename(file, ".ts"))
  .filter((name) => name !== "main")
  .sort()
const unknown = asked.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(", ")}; there are ${names.join(", ")}.`)
  process.exit(2)
}

const passedOn = Object.entries(options).flatMap(([name, value]) =>
  typeof value === "string" ? [`--${name}=${value}`] : value ? [`--${name}`] : []
)

let failed = false
let child: ReturnType<typeof Bun.spawn> | undefined
let interrupted = false
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    interrupted = true
    child?.kill(signal)
  })
}
for (const name of asked.length === 0 ? names : asked) {
  if (interrupted) break
  child = Bun.spawn([process.execPath, path.join(import.meta.dir, `${name}.ts`), ...passedOn], {
    stdio: ["ignore", "inherit", "inherit"]
  })
  failed = (await child.exited) !== 0 || failed
}
process.exit(failed ? 1 : 0)
