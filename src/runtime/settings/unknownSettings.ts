/** Variables of the environment that look like settings of this program and are none, such as misspelled ones. */
import { table } from "./table.ts"

/** First words that other programs hardly use; TLS, LOG, DATABASE or OTEL are everybody's. */
const ours = /^(PLATFORM|EMBEDDED|TEMPORAL|MASTER|PORTAL|TRUSTED|CORS|WEBHOOK|NOTICE|STATEMENT)_/
/** Most edits between a setting and a misspelling of it that begins with other words. */
const EDITS = 2

const names = Object.values(table).map(({ name }) => name)

/** The Levenshtein distance. */
const edits = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++)
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === b[j] ? 0 : 1)))
    row = next
  }
  return row.at(-1) ?? 0
}

/** A variable, and the setting whose name is nearest. */
export interface UnknownSetting {
  readonly name: string
  readonly nearest: string
}

/** The unknown settings of an environment; empty text counts as unset. */
export const unknownSettings = (environment: Readonly<Record<string, string | undefined>> = process.env): ReadonlyArray<UnknownSetting> =>
  Object.entries(environment).flatMap(([name, value = ""]) => {
    if (value.trim() === "" || names.includes(name) || !name.includes("_")) return []
    const [best] = names.map((nearest) => ({ nearest, distance: edits(name, nearest) })).sort((a, b) => a.distance - b.distance)
    return best !== undefined && (ours.test(name) || best.distance <= EDITS) ? [{ name, nearest: best.nearest }] : []
  })
