/** How an operation goes over the wire. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  readonly path: string
  /** Whether it answers a page of a list. */
  readonly pages: boolean
  /** Whether an argument is its query. */
  readonly query: boolean
  /** Whether it answers a file, as a stream of its bytes. */
  readonly file: boolean
  /** Whether an argument is its body. */
  readonly body: boolean
  /** Whether it takes an `Idempotency-Key`. */
  readonly once: boolean
}
