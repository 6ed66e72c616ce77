/** UTC days as `YYYY-MM-DD`, and months as `YYYY-MM`. */

/** The day `days` days later. */
export const dayAfter = (date: string, days: number): string =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)

/** The last day of a month. */
export const lastDay = (month: string): string =>
  new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).toISOString().slice(0, 10)

/** The months of a period, newest first. */
export const monthsOf = (first: string, last: string): ReadonlyArray<string> => {
  const months = [last.slice(0, 7)]
  for (let month = last.slice(0, 7); month > first.slice(0, 7); months.push(month)) month = dayAfter(`${month}-01`, -1).slice(0, 7)
  return months
}
