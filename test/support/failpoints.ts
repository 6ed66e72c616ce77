/**
 * A test build: comments of the form `failpoint: name` in the program's sources become places where the process is
 * killed, as by `kill -9`, at exactly that statement. Loaded before the program (`bun --preload`); the program itself
 * holds nothing but the comments. `FAIL_AT=name:n` kills at the n-th time that the place is reached.
 */
import { plugin } from "bun"

const [wanted = "", nth = "1"] = (process.env["FAIL_AT"] ?? "").split(":")
let reached = 0

Object.assign(globalThis, {
  custodyFailpoint: (name: string) => {
    // The signal is delivered before the call returns: not one statement more is run.
    if (name === wanted && ++reached === Number(nth)) process.kill(process.pid, "SIGKILL")
  }
})

plugin({
  name: "failpoints",
  setup: (build) => {
    build.onLoad({ filter: /\/src\/(?!portal\/web\/).*\.ts$/ }, async ({ path }) => ({
      contents: (await Bun.file(path).text()).replaceAll(/^\s*\/\/ failpoint: ([a-z-]+)$/gm, 'globalThis.custodyFailpoint("$1");'),
      loader: "ts"
    }))
  }
})
