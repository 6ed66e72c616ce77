/** Generated parts of documents. A part is between two HTML comments; `bun run golden` regenerates it. */
import { expect } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import { updating } from "./golden.ts"

const root = path.resolve(import.meta.dir, "../..")

/** The text of a document, by its path in the repository. */
export const documentText = (name: string): string => fs.readFileSync(path.join(root, name), "utf8")

/** Compares the part of a document with the generated text, or writes it. */
export const documentPart = (name: string, part: string, made: string): void => {
  const text = documentText(name)
  const [, opening = "", inside = "", closing = ""] = new RegExp(`(<!-- ${part}\\b[^>]*-->\n)([^]*?)(<!-- /${part} -->)`).exec(text) ?? []
  expect({ [`${name} has a part “${part}”`]: opening !== "" }).toEqual({ [`${name} has a part “${part}”`]: true })
  if (updating)
    fs.writeFileSync(
      path.join(root, name),
      text.replace(`${opening}${inside}${closing}`, () => `${opening}${made}${closing}`)
    )
  // Run `bun run golden` if the difference is intended.
  else expect(inside.split("\n")).toEqual(made.split("\n"))
}

/** Compares a whole document with the generated text, or writes it. */
export const documentWhole = (name: string, made: string): void => {
  const file = path.join(root, name)
  if (updating) {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, made)
  }
  // Run `bun run golden` if the difference is intended.
  else expect((fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "").split("\n")).toEqual(made.split("\n"))
}

/** The fenced blocks of a language in a document, in order. */
export const codeBlocks = (text: string, language: string): ReadonlyArray<string> =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, "gm"))].map(([, code = ""]) => code)
