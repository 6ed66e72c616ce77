/** Parses the responses of a kept HTTP connection as far as a benchmark's client needs: the status, and the end of a response. */
export class AnswerReader {
  /** The head of the response, as read so far. */
  head = ""
  /** Bytes of the response still to come; -1 while its head is read. */
  private missing = -1

  /** Begins with the next response. */
  begin(): void {
    this.head = ""
    this.missing = -1
  }

  /** Takes the received bytes. True when the response is complete. */
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

  /** The status of the response. */
  get status(): number {
    return Number(this.head.slice(9, 12))
  }
}
