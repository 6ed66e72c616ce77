/** Parts of the documents are generated from the program, and the API's document from the contract alone. */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import { readLine, types } from "../../src/custody/ledger/Record.ts"
import { markdownTable } from "../../tools/markdown.ts"
import { codeBlocks, documentPart, documentText } from "../support/document.ts"

const root = path.resolve(import.meta.dir, "../..")
const sources = [...new Bun.Glob("src/**/*.ts").scanSync({ cwd: root })]
  .sort()
  .map((file) => fs.readFileSync(path.join(root, file), "utf8"))

/** Metrics as declared in the sources: kind, name, description. */
const declared = sources.flatMap((text) =>
  [...text.matchAll(/Metric\.(counter|gauge|histogram)\(\s*"(\w+)",(?:\s*\{\s*description:|[^"]*?)\s*"([^"]+)"/g)].map(
    ([, kind = "", name = "", meaning = ""]) => [`\`${name}\``, kind, meaning]
  )
)

test("docs/operations.md names every metric", () => {
  expect(declared.length).toBe(
    sources.flatMap((text) => [...text.matchAll(/Metric\.(?:counter|gauge|histogram|frequency|summary|timer)\w*\(/g)]).length
  )
  documentPart("docs/operations.md", "metrics", `\n${markdownTable(["metric", "kind", "meaning"], declared.sort())}\n`)
})

test("operations and runbooks name existing metrics only", () => {
  const text = `${documentText("docs/operations.md")}${documentText("docs/runbooks.md")}`
  const names = [...text.matchAll(/\bcustody_\w+/g)].map(([name]) => name.replace(/_bucket$/, ""))
  const known = declared.map(([name = ""]) => name.replaceAll("`", ""))
  expect(names.filter((name) => !known.includes(name))).toEqual([])
})

test("docs/decisions.md has a row for each decision that code or tests cite", () => {
  const rows = [...documentText("docs/decisions.md").matchAll(/^\| D-(\d+) \|/gm)].map(([, number]) => Number(number))
  expect(new Set(rows).size).toBe(rows.length)
  const texts = [
    ...sources,
    ...[...new Bun.Glob("{test,workflows}/**/*.ts").scanSync({ cwd: root })].map((file) => fs.readFileSync(path.join(root, file), "utf8"))
  ]
  const cited = texts.flatMap((text) => [...text.matchAll(/\bD-(\d+)\b/g)].map(([, number]) => Number(number)))
  expect([...new Set(cited)].filter((number) => !rows.includes(number))).toEqual([])
})

test("docs/feed.md names every record type with its fields, and its examples are valid records", () => {
  const feed = documentText("docs/feed.md")
  const rows = [...feed.matchAll(/^\| `(\w+)` \| (.*) \| .* \|$/gm)].map(([, type = "", fields = ""]) => [
    type,
    [...fields.matchAll(/`(\w+)`/g)].map(([, name]) => name)
  ])
  const known = Object.entries(types).map(([type, { fields }]) => [
    type,
    Object.keys(fields).filter((name) => name !== "type" && name !== "occurredAt")
  ])
  expect(rows).toEqual(known)
  const examples = (codeBlocks(feed, "json")[0] ?? "").trim().split("\n")
  expect(examples.map((line, index) => [JSON.parse(line).type, readLine(line, index + 1)])).toEqual(
    Object.keys(types).map((type) => [type, expect.objectContaining({ _tag: "Right" })])
  )
})
