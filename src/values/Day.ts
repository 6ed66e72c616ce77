/** UTC days as `YYYY-MM-DD`. C-6, C-10. */
import { Schema } from "effect"

/** Whether text is a day that exists. */
export const isDay = (text: string): boolean => {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined
  return at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text) && text >= "0001"
}

/** The day after a day, or `days` days later. */
export const dayAfter = (date: string, days = 1): string =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)

/** The later of two days. */
export const later = (...days: readonly [string, string]): string => days.toSorted().at(-1) ?? ""

/** A day. */
export const day = (description: string) =>
  Schema.String.pipe(Schema.filter((text) => isDay(text) || "must be a day as YYYY-MM-DD")).annotations({
    jsonSchema: { type: "string", format: "date", description, examples: ["2025-03-24"] }
  })
