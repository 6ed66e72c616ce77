/**
 * Every rule with its tests. tests.json names the rules that a test or a group of tests proves (`Authentication 5`, `D-21`,
 * `F6`), by its title. Rules are in rules.json and decisions also in docs/decisions.md, so a new one fails the check until
 * tests.json names it.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import sections from "./rules.json" with { type: "json" }
import mapped from "./tests.json" with { type: "json" }
import { type Title, titles } from "./titles.ts"

const root = path.resolve(import.meta.dir, "../..")

/** A rule of the document. */
interface Rule {
  /** How tests.json cites it; several for a row of several faults. */
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

/** The decisions of docs/decisions.md that are not in rules.json, under that document's headings, with their first sentences, without links. */
const newer: ReadonlyArray<Section> = fs
  .readFileSync(path.join(root, "docs/decisions.md"), "utf8")
  .split(/^## /m)
  .map((part) => ({
    title: `Decisions: ${part.split("\n", 1)[0]}`,
    columns: ["decision", "in short"],
    rules: [...part.matchAll(/^\| ([DC]-\d+) \| ([^|]*?)(?:\. [^|]*)? \|/gm)]
      .map(([, rule = "", text = ""]) => ({ rule, text: `${text.replace(/\.$/, "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")}.` }))
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

/** The rules of each test: those that tests.json names for it or for a group around it. */
const held = titles
  .filter(({ isGroup }) => !isGroup)
  .map((test) => ({
    test,
    rules: new Set([test.title, ...test.groups].flatMap((title) => mapping[test.file]?.[title] ?? []))
  }))

/** The tests of a rule, each once. */
const testsOf = ({ ids }: Pick<Rule, "ids">): ReadonlyArray<Title> => {
  const found = held.filter(({ rules }) => ids.some((id) => rules.has(id))).map(({ test }) => test)
  return found.filter((one, index) => found.findIndex(({ file, title }) => file === one.file && title === one.title) === index)
}

/** Rules without a test and without a reason. */
export const untested = (): ReadonlyArray<string> =>
  all.flatMap((section) => rulesOf(section).filter((rule) => !rule.untested && testsOf(rule).length === 0)).flatMap(({ ids }) => ids)

/** Invalid entries of tests.json: unknown tests and rules. */
export const stale = (): ReadonlyArray<string> => {
  const ids = new Set(all.flatMap((section) => rulesOf(section).flatMap((rule) => rule.ids)))
  return Object.entries(mapping).flatMap(([file, tests]) =>
    Object.entries(tests).flatMap(([title, rules]) => {
      if (!titles.some((one) => one.file === file && one.title === title)) return [`${file}: there is no test “${title}”`]
      return rules.flatMap((rule) => (ids.has(rule) ? [] : [`${file}: there is no rule “${rule}” for “${title}”`]))
    })
  )
}

const cited = sections.flatMap((section) => (section.cited === undefined ? [] : [section.cited]))

/** `D-35`, `F26`, `Spec:`, `Authentication 5`, `rule 3`, or a number like that of a list in front. */
const ruleNumber = new RegExp(`\\b[CDFT]-?\\d+\\b|\\bSpec:|\\b(?:rule|${cited.join("|")}) \\d|^\\d+:`)

/** Titles of more than fifteen words, and titles with the number of a rule. */
export const invalidTitles = (): ReadonlyArray<string> =>
  titles.filter(({ title }) => title.split(" ").length > 15 || ruleNumber.test(title)).map(({ file, title }) => `${file}: “${title}”`)

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
