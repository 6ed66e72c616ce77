/**
 * Every rule with its tests. A test's title names the rules that it proves
 * (`Authentication 5`, `Decision D-21`, `F6`); if the title has no room, tests.json names them. Rules are in rules.json and
 * decisions also in docs/decisions.md, so a new one fails the check until a test names it.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import sections from "./rules.json" with { type: "json" }
import mapped from "./tests.json" with { type: "json" }
import { type Title, titles } from "./titles.ts"

const root = path.resolve(import.meta.dir, "../..")

/** Titles of sections whose rules are cited by name and number: `Authentication 5`. */
const cited = sections.flatMap((section) => (section.cited === undefined ? [] : [section.cited]))

/** `1, 2 and 5` as numbers. */
const numbersIn = (text: string): ReadonlyArray<string> => text.match(/\d+/g) ?? []

/** The rules that a title names. */
const rulesIn = (title: string): ReadonlyArray<string> => [
  ...[...title.matchAll(/\b[DCF]-?\d+\b/g)].map(([id]) => id).filter((id) => id.startsWith("F") || id.includes("-")),
  ...cited.flatMap((name) =>
    [...title.matchAll(new RegExp(`\\b${name} (\\d+(?:(?:, | and )\\d+)*)`, "g"))].flatMap(([, numbers = ""]) =>
      numbersIn(numbers).map((number) => `${name} ${number}`)
    )
  )
]

/** A rule of the document. */
interface Rule {
  /** How tests and tests.json cite it; several for a row of several faults. */
  readonly ids: ReadonlyArray<string>
  readonly name: string
  readonly text: string
  /** Why it has no test, or a remark on its tests. */
  readonly note?: string | undefined
  readonly untested: boolean
}

const idsOf = (section: { readonly title: string; readonly cited?: string | undefined }, rule: string): ReadonlyArray<string> => {
  if (/^[DC]-\d+$/.test(rule)) return [rule]
  const [, first, last] = /^F(\d+)(?: to F(\d+))?/.exec(rule) ?? []
  if (first !== undefined && last !== undefined)
    return Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => `F${Number(first) + index}`)
  if (first !== undefined) return rule.split(", ")
  return [section.cited === undefined ? `${section.title}: ${rule}` : `${section.cited} ${rule}`]
}

interface Section {
  readonly title: string
  readonly intro?: string | undefined
  readonly outro?: string | undefined
  readonly cited?: string | undefined
  readonly columns: ReadonlyArray<string>
  readonly rules: ReadonlyArray<{
    readonly rule: string
    readonly text: string
    readonly note?: string | undefined
    readonly untested?: string | undefined
  }>
}
const known = new Set(sections.flatMap(({ rules }) => rules.map(({ rule }) => rule)))

/** The decisions of docs/decisions.md that are not in rules.json, under that document's headings, with their first sentences. */
const newer: ReadonlyArray<Section> = fs
  .readFileSync(path.join(root, "docs/decisions.md"), "utf8")
  .split(/^## /m)
  .map((part) => ({
    title: `Decisions: ${part.split("\n", 1)[0]}`,
    columns: ["decision", "in short"],
    rules: [...part.matchAll(/^\| ([DC]-\d+) \| ([^|]*?)(?:\. [^|]*)? \|/gm)]
      .map(([, rule = "", text = ""]) => ({ rule, text: `${text.replace(/\.$/, "")}.` }))
      .filter(({ rule }) => !known.has(rule))
  }))
  .filter(({ rules }) => rules.length > 0)

const all: ReadonlyArray<Section> = [...sections, ...newer]

const rulesOf = (section: Section): ReadonlyArray<Rule> =>
  section.rules.map(({ note, rule, text, untested }) => ({
    ids: idsOf(section, rule),
    name: rule,
    text,
    note: untested ?? note,
    untested: untested !== undefined
  }))

/** The content of tests.json, by file and title. */
const mapping: { readonly [file: string]: { readonly [title: string]: ReadonlyArray<string> } } = mapped

/** The rules of each test: those that its title, a group around it, or tests.json names. */
const held = titles
  .filter(({ isGroup }) => !isGroup)
  .map((test) => ({
    test,
    rules: new Set([test.title, ...test.groups].flatMap((title) => [...rulesIn(title), ...(mapping[test.file]?.[title] ?? [])]))
  }))

/** The tests of a rule, each once. */
const testsOf = ({ ids }: Pick<Rule, "ids">): ReadonlyArray<Title> => {
  const found = held.filter(({ rules }) => ids.some((id) => rules.has(id))).map(({ test }) => test)
  return found.filter((one, index) => found.findIndex(({ file, title }) => file === one.file && title === one.title) === index)
}

/** Rules without a test and without a reason. */
export const untested = (): ReadonlyArray<string> =>
  all.flatMap((section) => rulesOf(section).filter((rule) => !rule.untested && testsOf(rule).length === 0)).flatMap(({ ids }) => ids)

/** Invalid entries of tests.json: unknown tests and rules, and rules that the title already names. */
export const stale = (): ReadonlyArray<string> => {
  const ids = new Set(all.flatMap((section) => rulesOf(section).flatMap((rule) => rule.ids)))
  return Object.entries(mapping).flatMap(([file, tests]) =>
    Object.entries(tests).flatMap(([title, rules]) => {
      if (!titles.some((one) => one.file === file && one.title === title)) return [`${file}: there is no test “${title}”`]
      return rules.flatMap((rule) => {
        if (!ids.has(rule)) return [`${file}: there is no rule “${rule}” for “${title}”`]
        return rulesIn(title).includes(rule) ? [`${file}: “${title}” names ${rule} itself`] : []
      })
    })
  )
}

const link = ({ file, title }: Title) => `[${path.basename(file)}](../${file}) “${title}”`
const row = (cells: ReadonlyArray<string>) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`

/** The document. */
export const conformance = (): string =>
  `${[
    "# Conformance",
    "<!-- Made from the tests' titles, tools/conformance and docs/decisions.md by `bun run documents`. -->",
    `Every rule of the API's specification, every decision that fills in what the specification leaves open, and every goal
that the service sets itself, each with the tests that fail when the rule is broken. Where the specification numbers its
rules, the number is the specification's.`,
    `- \`bun run test\` runs the tests against the real program, a real Postgres, a real Temporal server and a recording HTTPS
  receiver. Tests marked *long* run, or run at full size, with \`bun run faults\` only.
- Where a rule has no test, or a goal is not reached, the table says so.
- \`…\` in a test's title stands for a number or a word that is filled in when it runs.`,
    ...all.flatMap((section) => [
      `## ${section.title}`,
      ...(section.intro === undefined ? [] : [section.intro]),
      [
        row([...section.columns, "tests"]),
        row([...section.columns, ""].map(() => "---")),
        ...rulesOf(section).map((rule) =>
          row([rule.name, rule.text, [...(rule.note === undefined ? [] : [rule.note]), ...testsOf(rule).map(link)].join("<br>")])
        )
      ].join("\n"),
      ...(section.outro === undefined ? [] : [section.outro])
    ])
  ].join("\n\n")}\n`
