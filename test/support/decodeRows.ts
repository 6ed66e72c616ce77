/**
 * A test build that decodes the rows of frequent statements, too, which the program takes as they are. Loaded before the
 * program (`bun --preload`).
 */
import { plugin } from "bun"

plugin({
  name: "decodeRows",
  setup: (build) => {
    build.onLoad({ filter: /\/src\/database\/rows\.ts$/ }, async ({ path }) => {
      const text = await Bun.file(path).text()
      const contents = text.replace("export const castRows =", "export const castRows = decodeRows\nexport const unchecked =")
      if (contents === text) throw new Error("castRows is not where this build looks for it")
      return { contents, loader: "ts" }
    })
  }
})
