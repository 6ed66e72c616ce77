/** The combined JUnit reports of a run's processes. */
import * as fs from "node:fs"

/** A test file and how long it took. */
export interface FileTime {
  readonly file: string
  readonly seconds: number
}

/** Counts of a process's tests, the names of those that failed, and the time of each file. */
export interface Report {
  readonly tests: number
  readonly failures: number
  readonly skipped: number
  readonly failed: ReadonlyArray<string>
  readonly files: ReadonlyArray<FileTime>
}

const unescape = (text: string): string =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&apos;", "'").replaceAll("&amp;", "&")

const attribute = (element: string, name: string): string => unescape(new RegExp(` ${name}="([^"]*)"`).exec(element)?.[1] ?? "")

/** Reads a report; zeros without one, such as when the process crashed before it wrote it. */
export const readReport = (file: string): Report => {
  const text = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : ""
  const total = /<testsuites[^>]*>/.exec(text)?.[0] ?? ""
  const count = (name: string) => Number(attribute(total, name))
  const failed = [...text.matchAll(/(<testcase [^>]*[^/])>\s*<failure/g)].map(([, element = ""]) => {
    const groups = attribute(element, "classname").split(" > ").reverse()
    return `${attribute(element, "file")}: ${[...groups, attribute(element, "name")].join(" > ")}`
  })
  const files = [...text.matchAll(/^ {2}<testsuite [^>]*>/gm)].map(([element]) => ({
    file: attribute(element, "file"),
    seconds: Number(attribute(element, "time"))
  }))
  return { tests: count("tests"), failures: count("failures"), skipped: count("skipped"), failed, files }
}

/** The reports of all processes as one. */
export const sumOf = (reports: ReadonlyArray<Report>): Report => {
  const sum = (of: (one: Report) => number) => reports.reduce((total, one) => total + of(one), 0)
  return {
    tests: sum(({ tests }) => tests),
    failures: sum(({ failures }) => failures),
    skipped: sum(({ skipped }) => skipped),
    failed: reports.flatMap(({ failed }) => failed),
    files: reports.flatMap(({ files }) => files).sort((a, b) => b.seconds - a.seconds)
  }
}

/** Lines of a failed test's output that are kept: the error stands at its end. */
const REASON_LINES = 30

/** What `bun test` printed before each of its `(fail)` lines, since the test before; its last lines, indented. */
export const failuresIn = (output: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let since: Array<string> = []
  for (const line of output.split("\n")) {
    since.push(line)
    if (line.startsWith("(fail) "))
      found.push(
        since
          .slice(-REASON_LINES)
          .map((one) => `    ${one}`)
          .join("\n")
      )
    if (/^\((pass|fail|skip)\) /.test(line)) since = []
  }
  return found
}
