/** How an operation is sent over HTTP. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  readonly path: string
  /** Whether it returns a page of a list. */
  readonly pages: boolean
  /** Whether an argument is its query. */
  readonly query: boolean
  /** Whether it returns a file, as a stream of its bytes. */
  readonly file: boolean
  /** Whether it returns nothing: 204. */
  readonly empty?: true
  /** Whether an argument is its body. */
  readonly body: boolean
  /** Whether it accepts an `Idempotency-Key`. */
  readonly once: boolean
}
