/** The name of an exported file: its vault and its period. RFC 6266. C-11. */
import type { ExportFormat } from "./exportFile.ts"
import type { TransactionFilter } from "./transactionPage.ts"

/** Characters of a label in a name: with four bytes each, the name still fits into the 255 bytes of a file system. */
const LABEL = 50

/** Text without characters that file systems, shells or HTTP headers treat specially, and without invisible ones. */
const safe = (text: string, others: RegExp): string => text.replace(others, "-").replace(/^[-.]+|-+$/g, "")

/** The `Content-Disposition` of an export. Its period ends at the present if the filters do not limit it. */
export const exportName = ({
  filter: { occurredAfter, occurredBefore = new Date().toISOString() },
  format,
  label,
  vaultId
}: {
  readonly label: string
  readonly vaultId: string
  readonly format: ExportFormat
  readonly filter: TransactionFilter
}): string => {
  const period = [...(occurredAfter === undefined ? [] : [occurredAfter.slice(0, 10)]), `to-${occurredBefore.slice(0, 10)}`].join("-")
  const nameOf = (vault: string) => `${vault}-transactions-${period}.${format}`
  const whole = safe([...label.normalize("NFC")].slice(0, LABEL).join(""), /[^\p{L}\p{M}\p{N}._-]+/gu)
  const ascii = safe(whole.normalize("NFKD").replace(/\p{M}/gu, ""), /[^A-Za-z0-9._-]+/g)
  const plain = `attachment; filename="${nameOf(ascii || vaultId)}"`
  return whole === ascii ? plain : `${plain}; filename*=UTF-8''${encodeURIComponent(nameOf(whole))}`
}
