/** Rows by natural key, and which of them the batch changed: those are written. */
export class ChangedRows<Row> {
  readonly #rows = new Map<string, Row>()
  readonly #changed = new Set<string>()
  /** What was replaced since {@link mark}: the previous row, and whether it had changed already. */
  #replaced: Array<{ readonly key: string; readonly row: Row | undefined; readonly changed: boolean }> = []
  get(key: string): Row | undefined {
    return this.#rows.get(key)
  }
  has(key: string): boolean {
    return this.#rows.has(key)
  }
  load(key: string, row: Row): void {
    this.#rows.set(key, row)
  }
  change(key: string, row: Row): void {
    this.#replaced.push({ key, row: this.#rows.get(key), changed: this.#changed.has(key) })
    this.#rows.set(key, row)
    this.#changed.add(key)
  }
  all(): Iterable<Row> {
    return this.#rows.values()
  }
  /** Removes the rows that do not pass. */
  retain(passes: (row: Row) => boolean): void {
    for (const [key, row] of this.#rows) if (!passes(row)) this.#rows.delete(key)
  }
  /** Starts a part that may be undone. */
  mark(): void {
    this.#replaced = []
  }
  /** Undoes what changed since {@link mark}. */
  undo(): void {
    for (const { changed, key, row } of this.#replaced.reverse()) {
      if (row === undefined) this.#rows.delete(key)
      else this.#rows.set(key, row)
      if (!changed) this.#changed.delete(key)
    }
    this.#replaced = []
  }
  /** The rows to write, in key order, so that concurrent writers never deadlock. */
  changed(): ReadonlyArray<Row> {
    return this.#of([...this.#changed].sort())
  }
  /** The rows to write, in the order of their records: for rows that are listed by a number from Postgres. */
  changedInOrder(): ReadonlyArray<Row> {
    return this.#of([...this.#changed])
  }
  #of(keys: ReadonlyArray<string>): ReadonlyArray<Row> {
    return keys.flatMap((key) => this.#rows.get(key) ?? [])
  }
}
