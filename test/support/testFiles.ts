/** The test files of a run, put into groups that run in processes of their own beside each other. */
import * as os from "node:os"
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "../..")

/** Folders whose files are quick, or write the same files, and run in one process. */
const together = ["test", "test/golden", "test/values", "test/crypto", "test/limits", "test/settings"]

/** The longest files start first, so that none is left for the end. The others follow by name. */
const longest = [
  "test/notifications/",
  "test/faults/",
  "test/sending/",
  "test/portal/",
  "test/demo/",
  "test/embedded/",
  "test/dispatch/",
  "test/retention/",
  "test/commands/",
  "test/http/",
  "test/ledger/"
]

/** One process per core: with the programs that they start, tests use the CPU nearly all of the time. */
export const concurrency = Math.min(6, os.availableParallelism())

const rank = (file: string): number => {
  const index = longest.findIndex((prefix) => file.startsWith(prefix))
  return index === -1 ? longest.length : index
}

/** Whether `bun test` takes a file for one of these arguments: parts of paths, or none for every file. */
const matches = (file: string, args: ReadonlyArray<string>): boolean =>
  args.length === 0 || args.some((arg) => file.includes(path.relative(root, path.resolve(root, arg))))

/**
 * The arguments of each `bun test` of a run. With options, and when golden files are written, it is one process with
 * all of the arguments.
 */
export const groupsOf = (args: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  if (args.some((arg) => arg.startsWith("-")) || process.env["UPDATE_GOLDEN"] === "1") return [args]
  const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].filter((file) => matches(file, args))
  const groups = new Map<string, Array<string>>()
  for (const file of files.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))) {
    const folder = path.dirname(file)
    const group = together.includes(folder) ? folder : file
    groups.set(group, [...(groups.get(group) ?? []), `./${file}`])
  }
  return groups.size === 0 ? [args] : [...groups.values()]
}
