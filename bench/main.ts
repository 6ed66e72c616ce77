/**
 * `bun run bench [name …] [--large]`: benchmarks with their floors in the same run. Each runs in a process and a data
 * folder of its own, prints its report as JSON and as a table, and ends by itself. Without a name all of them run.
 */
import * as path from "node:path"

const names = [...new Bun.Glob("*.ts").scanSync(import.meta.dir)]
  .map((file) => path.basename(file, ".ts"))
  .filter((name) => name !== "main")
  .sort()
const options = process.argv.slice(2).filter((argument) => argument.startsWith("--"))
const asked = process.argv.slice(2).filter((argument) => !argument.startsWith("--"))
const unknown = asked.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(", ")}; there are ${names.join(", ")}.`)
  process.exit(2)
}

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
  child = Bun.spawn([process.execPath, path.join(import.meta.dir, `${name}.ts`), ...options], {
    stdio: ["ignore", "inherit", "inherit"]
  })
  failed = (await child.exited) !== 0 || failed
}
process.exit(failed ? 1 : 0)
