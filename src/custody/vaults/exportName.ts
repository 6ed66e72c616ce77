/** The name of an exported file: its vault and its period. RFC 6266. C-11. */
import type { Period } from "../../http/Period.ts"
import { asciiFileLabel, fileLabel } from "../../values/fileLabel.ts"

/** The formats of an export. */
export type ExportFormat = "csv" | "ndjson"

/** The last moment of a period, which ends at the present if nothing limits it. `occurredUntil` does not belong to it. */
const endOf = ({ occurredBefore, occurredUntil }: Period): string =>
  occurredBefore ?? new Date(occurredUntil === undefined ? Date.now() : Date.parse(occurredUntil) - 1).toISOString()

/** The `Content-Disposition` of an export. */
export const exportName = ({
  format,
  label,
  period,
  plainLabel
}: {
  readonly label: string
  readonly plainLabel: string
  readonly format: ExportFormat
  readonly period: Period
}): string => {
  const from = period.occurredAfter === undefined ? "" : `${period.occurredAfter.slice(0, 10)}-`
  const days = `${from}to-${endOf(period).slice(0, 10)}`
  const nameOf = (vault: string) => `${vault}-transactions-${days}.${format}`
  const whole = fileLabel(label)
  const ascii = asciiFileLabel(whole)
  const plain = `attachment; filename="${nameOf(ascii || plainLabel)}"`
  return whole === ascii ? plain : `${plain}; filename*=UTF-8''${encodeURIComponent(nameOf(whole))}`
}
