/** The test files of a run, put into groups that run in processes of their own beside each other. */
import * as os from "node:os"
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "../..")

/** Folders whose files are quick, or write the same files, and run in one process. */
const together = ["test", "test/golden", "test/values", "test/crypto", "test/limits", "test/settings"]

/** Of other folders, this many files run in one process: to load the modules takes over a second. */
const AT_MOST = 12

/** Files that wait most of the time, for schedules and time limits: they run beside those that use the CPU. */
const waiting = [
  "test/deliveries/pings.test.ts",
  "test/faults/interruptions.test.ts",
  "test/faults/slowEndpointBacklog.test.ts",
  "test/feed/slowReader.test.ts",
  "test/ledger/groupCommit.test.ts",
  "test/proof/checkpoints.test.ts",
  "test/sending/endpointLimiter.test.ts",
  "test/sending/endpointPermits.test.ts",
  "test/sending/firstAttempts.test.ts",
  "test/sending/hold.test.ts",
  "test/sending/ownOutage.test.ts",
  "test/sending/signatures.test.ts",
  "test/sending/slowEndpoint.test.ts"
]

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

/** One process more than cores: with the programs that they start, tests use the CPU most of the time, but they also wait. */
export const concurrency = Math.min(6, os.availableParallelism() + 1)

const rank = (file: string): number => {
  const index = longest.findIndex((prefix) => file.startsWith(prefix))
  return index === -1 ? longest.length : index
}

/** Whether `bun test` takes a file for one of these arguments: parts of paths, or none for every file. */
const matches = (file: string, args: ReadonlyArray<string>): boolean =>
  args.length === 0 || args.some((arg) => file.includes(path.relative(root, path.resolve(root, arg))))

/** The arguments of a `bun test`. */
export type Group = ReadonlyArray<string>

/**
 * The groups of a run: those that share the cores, and those that wait most of the time and run beside them, one after the
 * other. With options, and when golden files are written, it is one process with all of the arguments.
 */
export const groupsOf = (args: ReadonlyArray<string>): { readonly busy: ReadonlyArray<Group>; readonly waiting: ReadonlyArray<Group> } => {
  if (args.some((arg) => arg.startsWith("-")) || process.env["UPDATE_GOLDEN"] === "1") return { busy: [args], waiting: [] }
  const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].filter((file) => matches(file, args))
  if (files.length === 0) return { busy: [args], waiting: [] }
  const group = (some: ReadonlyArray<string>): ReadonlyArray<Group> => {
    const groups: Array<{ readonly folder: string; readonly files: Array<string> }> = []
    for (const file of some) {
      const folder = path.dirname(file)
      const open = groups.findLast((one) => one.folder === folder)
      if (open !== undefined && (together.includes(folder) || open.files.length < AT_MOST)) open.files.push(`./${file}`)
      else groups.push({ folder, files: [`./${file}`] })
    }
    return groups.map(({ files }) => files)
  }
  const sorted = files.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
  return {
    busy: group(sorted.filter((file) => !waiting.includes(file))),
    waiting: group(sorted.filter((file) => waiting.includes(file)))
  }
}
