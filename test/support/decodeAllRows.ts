/** A test build that decodes the rows of every statement. Loaded before the program's sources (`bun --preload`). */
import { plugin } from "bun"
import { castRowsDecoded, ROWS } from "./program.ts"

plugin({
  name: "decodeAllRows",
  setup: (build) => {
    build.onLoad({ filter: ROWS }, async ({ path }) => ({ contents: castRowsDecoded(path, await Bun.file(path).text()), loader: "ts" }))
  }
})
