/** A vault's label in the name of a file. Also runs in browsers. C-11. */

/** Characters of a label in a name: with four bytes each, the name still fits into the 255 bytes of a file system. */
const LABEL = 50

const safe = (text: string, others: RegExp): string => text.replace(others, "-").replace(/^[-.]+|-+$/g, "")

/** The label without characters that file systems, shells or HTTP headers treat specially, and without invisible ones; may be empty. */
export const fileLabel = (label: string): string => safe([...label.normalize("NFC")].slice(0, LABEL).join(""), /[^\p{L}\p{M}\p{N}._-]+/gu)

/** The ASCII letters and digits of a {@link fileLabel}; may be empty. */
export const asciiFileLabel = (fileLabel: string): string => safe(fileLabel.normalize("NFKD").replace(/\p{M}/gu, ""), /[^A-Za-z0-9._-]+/g)
