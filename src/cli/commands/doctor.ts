/** `custody doctor`. */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Console, Effect, Logger, LogLevel } from "effect"
import type { Report } from "../doctor/Doctor.ts"
import { codeOf, type Finding, openPoints } from "../doctor/Finding.ts"
import { left, type Styles, styles } from "../terminal/text.ts"
import { Unwell } from "./exit.ts"

const SETTING = 28,
  SUBJECT = 19

const settingLine = ({ bad, dim }: Styles, { fault, given, name, value }: Report["settings"][number]): string =>
  fault === undefined
    ? `  ${left(name, SETTING)}${given ? value : dim(value ?? "")}`
    : `  ${left(name, SETTING)}${bad(fault.slice(name.length + 2))}`

const findingLines = ({ bad, bold, good }: Styles, { advice, says, state, subject }: Finding): ReadonlyArray<string> => [
  `${{ well: good("✓"), notice: bold("!"), fault: bad("✗") }[state]} ${left(subject, SUBJECT)} ${says}`,
  ...(advice === undefined ? [] : [`  ${left("", SUBJECT)} → ${advice}`])
]

const count = (findings: ReadonlyArray<Finding>, state: Finding["state"], one: string, more: string): string => {
  const number = findings.filter((finding) => finding.state === state).length
  return `${number} ${number === 1 ? one : more}`
}

const text = ({ findings, settings }: Report): string => {
  const style = styles(process.stdout.isTTY === true && process.env.NO_COLOR === undefined)
  const open = openPoints(findings)
  const counts = `(${count(findings, "fault", "fault", "faults")}, ${count(findings, "notice", "notice", "notices")})`
  return [
    open.length === 0
      ? style.good(`Ready for production ${counts}.`)
      : style.bad(`Not ready for production ${counts}: ${open.join(", ")}.`),
    "",
    style.bold("Settings"),
    ...settings.map((one) => settingLine(style, one)),
    "",
    style.bold("Checks"),
    ...findings.flatMap((one) => findingLines(style, one))
  ].join("\n")
}

export const doctor = Command.make(
  "doctor",
  {
    json: Options.boolean("json").pipe(Options.withDescription("print settings and findings as JSON on standard output"))
  },
  ({ json }) =>
    Effect.gen(function* () {
      const { examine } = yield* Effect.promise(() => import("../doctor/Doctor.ts"))
      const report = yield* Logger.withMinimumLogLevel(examine, LogLevel.None)
      const code = codeOf(report.findings)
      yield* Console.log(
        json ? JSON.stringify({ readyForProduction: openPoints(report.findings).length === 0, ...report, code }, null, 2) : text(report)
      )
      if (code !== 0) return yield* new Unwell({ code })
    })
).pipe(
  Command.withDescription(
    "Check every setting and the connection to every server, and print what is wrong and how to fix it. Starts nothing and changes nothing. Exit code 0 if the service can run."
  )
)
