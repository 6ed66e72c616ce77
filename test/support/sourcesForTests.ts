/** Changes the program's sources for tests as they are loaded, for a test file that runs without a build (`bun --preload`). */
import { plugin } from "bun"
import { moduleForTests, SOURCES } from "./program.ts"

plugin({
  name: "sourcesForTests",
  setup: (build) => {
    build.onLoad({ filter: SOURCES }, async ({ path }) => ({ contents: await moduleForTests(path), loader: "ts" }))
  }
})
