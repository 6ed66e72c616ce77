/** Reads the answers of a kept HTTP connection, as little as a benchmark's client must: the status, and where an answer ends. */
export class AnswerReader {
  /** The answer's head, as far as it was read. */
  head = ""
  /** Bytes of the answer that are still to come; -1 while its head is read. */
  private missing = -1

  /** Begins with the next answer. */
  begin(): void {
    this.head = ""
    this.missing = -1
  }

  /** Takes what arrived. True when the answer is complete. */
  take(chunk: Buffer): boolean {
    if (this.missing >= 0) this.missing -= chunk.length
    else {
      const before = this.head.length
      const end = chunk.indexOf("\r\n\r\n")
      this.head += chunk.toString("latin1", 0, end < 0 ? chunk.length : end)
      if (end < 0) return false
      const length = /content-length: (\d+)/i.exec(this.head)
      this.missing = Number(length?.[1] ?? 0) - (before + chunk.length - this.head.length - 4)
    }
    return this.missing <= 0
  }

  /** The answer's status. */
  get status(): number {
    return Number(this.head.slice(9, 12))
  }
}
