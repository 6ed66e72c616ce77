/** The test files of a run, put into groups that run in processes of their own beside each other. */
import * as os from "node:os"
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "../..")

/** At most this many files run in one process. Each process loads the modules again. */
const AT_MOST = 12

/** Files that wait most of the time, for schedules and time limits: they run beside those that use the CPU. */
const waiting = [
  "test/delivery/deliveries/pings.test.ts",
  "test/faults/interruptions.test.ts",
  "test/faults/resolver.test.ts",
  "test/faults/slowEndpointBacklog.test.ts",
  "test/events/feed/slowReader.test.ts",
  "test/custody/ledger/groupCommit.test.ts",
  "test/events/proof/checkpoints.test.ts",
  "test/delivery/sending/firstAttempts.test.ts",
  "test/delivery/sending/hold.test.ts",
  "test/delivery/sending/holdEnds.test.ts",
  "test/delivery/sending/lostAnswers.test.ts",
  "test/delivery/sending/rejectedFirst.test.ts",
  "test/delivery/sending/signatures.test.ts",
  "test/delivery/sending/slowEndpoint.test.ts",
  "test/delivery/sending/unreachable.test.ts"
]

/** Files whose programs work for so long that JavaScriptCore's optimizing compiler pays off. */
const optimized = [
  "test/access/visibility/admission.test.ts",
  "test/access/credentials/accessMatrix.test.ts",
  "test/cli/demo/demo.test.ts",
  "test/events/log/eventPlans.test.ts",
  "test/events/log/visibilityMatrix.test.ts",
  "test/custody/ledger/realData.test.ts",
  "test/custody/statements/sealing.test.ts"
]

/** Files that measure how soon something happens under a load of their own: they run after the others, one at a time. */
const measured = [
  "test/faults/burst.test.ts",
  "test/faults/lostQueues.test.ts",
  "test/faults/retryAll.test.ts",
  "test/faults/silentNames.test.ts"
]

/** The longest files start first, so that none is left for the end. The others follow by name. */
const longest = [
  "test/delivery/notices/",
  "test/faults/",
  "test/delivery/sending/",
  "test/portal/",
  "test/cli/demo/",
  "test/runtime/embedded/",
  "test/delivery/dispatch/",
  "test/events/retention/",
  "test/cli/commands/",
  "test/http/",
  "test/custody/ledger/"
]

/** Groups that run at once: with the programs that they start, each uses a core most of the time. The runner adds more where they do not. */
export const concurrency = Math.min(4, os.availableParallelism())

const rank = (file: string): number => {
  const index = longest.findIndex((prefix) => file.startsWith(prefix))
  return index === -1 ? longest.length : index
}

/** Whether `bun test` takes a file for one of these arguments: parts of paths, or none for every file. */
const matches = (file: string, args: ReadonlyArray<string>): boolean =>
  args.length === 0 || args.some((arg) => file.includes(path.relative(root, path.resolve(root, arg))))

/** Files that run in one process. */
export interface Group {
  /** The arguments of its `bun test`. */
  readonly args: ReadonlyArray<string>
  /** Whether its programs run with the optimizing compiler. */
  readonly optimized: boolean
}

const groupOf = (files: ReadonlyArray<string>): Group => ({
  args: files.map((file) => `./${file}`),
  optimized: files.every((file) => optimized.includes(file))
})

/** Groups of files that become smaller towards the end of a run, so that all processes end at about the same time. */
const inGroups = (files: ReadonlyArray<string>): ReadonlyArray<Group> => {
  const groups: Array<Group> = []
  for (let next = 0; next < files.length; ) {
    const size = Math.min(AT_MOST, Math.max(2, Math.ceil((files.length - next) / (8 * concurrency))))
    groups.push(groupOf(files.slice(next, next + size)))
    next += size
  }
  return groups
}

/**
 * The groups of a run: those that share the cores, the one of files that wait most of the time, which runs beside them, and the
 * one that runs last.
 * With options, and when golden files are written, it is one process with all of the arguments.
 */
export const groupsOf = (args: ReadonlyArray<string>): { readonly [when in "busy" | "waiting" | "last"]: ReadonlyArray<Group> } => {
  const one = { busy: [{ args, optimized: false }], waiting: [], last: [] }
  if (args.some((arg) => arg.startsWith("-")) || process.env["UPDATE_GOLDEN"] === "1") return one
  const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].filter((file) => matches(file, args))
  if (files.length === 0) return one
  const sorted = files.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
  const waits = sorted.filter((file) => waiting.includes(file))
  const last = sorted.filter((file) => measured.includes(file))
  const others = sorted.filter((file) => ![...waiting, ...optimized, ...measured].includes(file))
  return {
    busy: [...inGroups(sorted.filter((file) => optimized.includes(file))), ...inGroups(others)],
    waiting: waits.length === 0 ? [] : [groupOf(waits)],
    last: last.length === 0 ? [] : [groupOf(last)]
  }
}
