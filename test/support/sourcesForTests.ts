/** Loads the program's sources as the tests run them, without a build (`bun --preload`). */
import { plugin } from "bun"
import { forTests, SOURCES } from "./program.ts"

plugin({
  name: "sourcesForTests",
  setup: (build) => {
    build.onLoad({ filter: SOURCES }, async ({ path }) => ({ contents: await forTests(path), loader: "ts" }))
  }
})
