/** A Markdown table. */
export const markdownTable = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const line = (cells: ReadonlyArray<string>) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |\n`
  return `${line(head)}${line(head.map(() => "---"))}${rows.map(line).join("")}`
}
