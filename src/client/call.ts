/** What callers of an operation pass and get: options of a call, and the pages of a list. */
import type { Page } from "./generated/custody.ts"

/** Options of one call. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined
  /** Your own request id, 8 to 64 of `A-Z a-z 0-9 _ -`; it appears in the service's log. */
  readonly requestId?: string | undefined
}

/** Options of an idempotent call. */
export interface OnceOptions extends RequestOptions {
  /** Within 24 hours, the same key and body return the same response and do nothing else. Default: a new key. */
  readonly idempotencyKey?: string | undefined
}

/** A list: `await` returns its first page, `for await` iterates over all items, `pages()` over pages. */
export interface Pages<A> extends PromiseLike<Page<A>>, AsyncIterable<A> {
  readonly pages: () => AsyncIterable<Page<A>>
}
