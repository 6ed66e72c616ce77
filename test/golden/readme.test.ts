/** What the README and the documents say about the program is generated from the program or compared with it. */
import { describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import packageJson from "../../package.json" with { type: "json" }
import { exitCodes } from "../../src/cli/commands/exit.ts"
import type { Setting } from "../../src/runtime/settings/readers.ts"
import { fallbackOf } from "../../src/runtime/settings/Settings.ts"
import { table } from "../../src/runtime/settings/table.ts"
import { markdownTable } from "../../tools/markdown.ts"
import { documentPart, documentText } from "../support/document.ts"

const root = path.resolve(import.meta.dir, "../..")
/** The folders in a folder. */
const foldersOf = (folder: string) =>
  fs
    .readdirSync(path.join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`)

/** A default that is a value, not a sentence, is formatted as code. */
const shownDefault = (one: Setting<unknown>): string => {
  const text = fallbackOf(one)
  return one.fallback !== null && text === one.fallback ? `\`${text}\`` : text
}

/** The texts in backticks. */
const quoted = (text: string): ReadonlyArray<string> => [...text.matchAll(/`([^`\n]+)`/g)].map(([, name = ""]) => name)

describe("README.md and the pages that it points to", () => {
  test("lists the program's settings with their defaults", () => {
    const settings: ReadonlyArray<Setting<unknown>> = Object.values(table)
    documentPart(
      "docs/settings.md",
      "settings",
      `\n${markdownTable(
        ["name", "default", "meaning"],
        settings.map((one) => [`\`${one.name}\``, shownDefault(one), one.meaning])
      )}\n`
    )
  })

  test("lists the program's exit codes", () => {
    const codes = Object.entries(exitCodes).map(([code, meaning]) => [code, meaning])
    documentPart("docs/settings.md", "exit codes", `\n${markdownTable(["code", "meaning"], codes)}\n`)
  })

  test("lists the dependencies of package.json, each once", () => {
    const named = quoted(documentText("docs/dependencies.md").split("\n## ")[0] ?? "").filter((name) => name !== "package.json")
    const wanted = [...Object.keys(packageJson.dependencies), ...Object.keys(packageJson.devDependencies)]
    expect([...named].sort()).toEqual(wanted.sort())
  })

  test("the page on the architecture names every wing and room", () => {
    const named = [...documentText("docs/architecture.md").matchAll(/`(src\/[^`]+)`/g)].map(([, name]) => name)
    const wings = foldersOf("src")
    const rooms = wings.flatMap((wing) => (/^src\/(?:client|http|values)$/.test(wing) ? [] : foldersOf(wing)))
    expect(named.filter((name) => !name?.endsWith(".ts")).sort()).toEqual([...wings, ...rooms].sort())
  })
})

describe("the documents", () => {
  const documents = [
    ...fs.readdirSync(root),
    ...(fs.existsSync(path.join(root, "docs")) ? fs.readdirSync(path.join(root, "docs")).map((name) => `docs/${name}`) : [])
  ].filter((name) => name.endsWith(".md"))

  test("link to existing files only", () => {
    const broken = documents.flatMap((name) =>
      [...documentText(name).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map(([, target = ""]) => target)
        .filter((target) => !fs.existsSync(path.resolve(root, path.dirname(name), target)))
        .map((target) => `${name} → ${target}`)
    )
    expect(broken).toEqual([])
  })
})
