/**
 * Golden files: what users and other programs rely on, stored completely, so that a change shows up in review. `bun run
 * golden` regenerates them.
 */
import { expect } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"

const folder = path.resolve(import.meta.dir, "../golden/files")

/** Whether this run writes the golden files instead of comparing with them. */
export const updating = process.env["UPDATE_GOLDEN"] === "1"

/** The text of a golden file; undefined if the file does not exist. */
export const read = (name: string): string | undefined => {
  const file = path.join(folder, name)
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined
}

/** Names of the golden files in a folder of theirs. */
export const names = (under: string): ReadonlyArray<string> => {
  const full = path.join(folder, under)
  return fs.existsSync(full) ? fs.readdirSync(full).sort() : []
}

/** Compares text with a golden file, or writes the file. */
export const golden = (name: string, text: string): void => {
  if (updating) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    fs.writeFileSync(path.join(folder, name), text)
    return
  }
  const known = read(name)
  if (known === text) return
  // Shows the difference only; both complete texts would hide it.
  const [before, after] = [(known ?? "").split("\n"), text.split("\n")]
  const gone = before.filter((line) => !after.includes(line)).slice(0, 40)
  const added = after.filter((line) => !before.includes(line)).slice(0, 40)
  expect({ [`${name} (run \`bun run golden\` if this is intended)`]: { gone, added, lines: before.length } }).toEqual({
    [`${name} (run \`bun run golden\` if this is intended)`]: { gone: [], added: [], lines: after.length }
  })
  throw new Error(`${name} differs in the order of its lines`)
}

/** JSON as golden files hold it. */
export const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
