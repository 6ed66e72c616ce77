/** docs/conformance.md names a test for each rule: here it is held that those tests are there, and that no rule is left out. */
import { describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import { documentText } from "../support/document.ts"

const root = path.resolve(import.meta.dir, "../..")
const text = documentText("docs/conformance.md")

/** The rows of the tables, by the heading that they stand under. */
const rows = text.split(/^## /m).flatMap((part) => {
  const [title = ""] = part.split("\n", 1)
  return [...part.matchAll(/^\| (.*) \|$/gm)]
    .map(([, line = ""]) => line.split(/(?<!\\) \| /))
    .slice(2)
    .map((cells) => ({ title: title.trim(), rule: cells[0] ?? "", tests: cells.at(-1) ?? "" }))
})
const named = (cell: string) =>
  [...cell.matchAll(/\[([^\]]+)\]\(\.\.\/(test\/[^)]+)\) “([^”]+)”/g)].map(([, label = "", file = "", name = ""]) => ({
    label,
    file,
    name
  }))

/** What a file calls its tests and groups of tests, and the names of those that it makes from a table; `…` for what is filled in. */
const titles = (file: string): ReadonlyArray<string> => {
  const source = fs.readFileSync(path.join(root, file), "utf8")
  const call = /\b(?:test|describe)(?:\.\w+)*(?:\([^()\n]*(?:\([^()]*\))?[^()\n]*\))?\(\s*("(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)/g
  const entry = /^\s*("(?:[^"\\]|\\.)*"):\s*\[/gm
  return [...source.matchAll(call), ...source.matchAll(entry)].map(([, literal = ""]) =>
    literal
      .slice(1, -1)
      .replaceAll(/\\(["`])/g, "$1")
      .replaceAll(/\$\{[^}]*(?:\{[^}]*\}[^}]*)*\}/g, "…")
  )
}

describe("docs/conformance.md", () => {
  test("names only tests that there are", () => {
    const all = rows.flatMap(({ tests }) => named(tests))
    expect(all.length).toBeGreaterThan(300)
    // Whatever else is linked would have no name, and a name without a link would not be looked for.
    expect(all.length).toBe(text.split("](../test/").length - 1)
    const known = new Map<string, ReadonlyArray<string>>()
    const missing = all.filter(({ file, label, name }) => {
      if (path.basename(file) !== label || !fs.existsSync(path.join(root, file))) return true
      if (!known.has(file)) known.set(file, titles(file))
      return known.get(file)?.includes(name) !== true
    })
    expect(missing.map(({ file, name }) => `${file}: ${name}`)).toEqual([])
  })

  test("has a test for each rule, or says that there is none", () => {
    const without = rows.filter(({ tests }) => named(tests).length === 0)
    expect(rows.length).toBeGreaterThan(150)
    expect(without.map(({ rule, tests, title }) => `${title} ${rule}: ${/no test|nothing to test/.test(tests)}`)).toEqual(
      without.map(({ rule, title }) => `${title} ${rule}: true`)
    )
    expect(without.length).toBeLessThan(3)
  })

  test("leaves out no numbered rule and no decision", () => {
    const rulesOf = (title: string) => rows.filter((row) => row.title === title).map(({ rule }) => rule)
    for (const [title, count] of [
      ["What the service does", 6],
      ["Endpoints: common rules", 5],
      ["Authentication", 12],
      ["Events: delivery contract", 7],
      ["Errors", 4],
      ["Versioning", 3],
      ["Custody records", 5],
      ["What must hold whatever dies", 8]
    ] as const)
      expect([title, ...rulesOf(title)]).toEqual([title, ...Array.from({ length: count }, (_, index) => String(index + 1))])
    const decided = [...documentText("docs/decisions.md").matchAll(/^\| (D-\d+) \|/gm)].map(([, decision = ""]) => decision)
    const held = rows.filter(({ title }) => title.startsWith("Decisions: ")).map(({ rule }) => rule)
    expect(held.sort()).toEqual(decided.sort())
  })
})
