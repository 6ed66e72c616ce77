/** The name of an exported file: its vault and its period. RFC 6266. C-11. */
import type { Period } from "../../http/Period.ts"
import type { ExportFormat } from "./exportFile.ts"

/** Characters of a label in a name: with four bytes each, the name still fits into the 255 bytes of a file system. */
const LABEL = 50

/** Text without characters that file systems, shells or HTTP headers treat specially, and without invisible ones. */
const safe = (text: string, others: RegExp): string => text.replace(others, "-").replace(/^[-.]+|-+$/g, "")

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
  const whole = safe([...label.normalize("NFC")].slice(0, LABEL).join(""), /[^\p{L}\p{M}\p{N}._-]+/gu)
  const ascii = safe(whole.normalize("NFKD").replace(/\p{M}/gu, ""), /[^A-Za-z0-9._-]+/g)
  const plain = `attachment; filename="${nameOf(ascii || plainLabel)}"`
  return whole === ascii ? plain : `${plain}; filename*=UTF-8''${encodeURIComponent(nameOf(whole))}`
}
