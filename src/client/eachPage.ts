import { NoAnswerError } from "./errors.ts"

/**
 * The pages of a list or of the feed, each requested when the previous one was used. Rejects if a cursor repeats, because
 * such a list would never end.
 */
export async function* eachPage<P extends { readonly pagination: { readonly nextCursor: string | null } }>(
  read: (cursor: string | undefined) => PromiseLike<P>,
  from?: string
): AsyncGenerator<P, void> {
  const seen = new Set<string | undefined>([from])
  for (let cursor = from; ; ) {
    const page = await read(cursor)
    const { nextCursor } = page.pagination
    if (nextCursor !== null && seen.has(nextCursor))
      throw new NoAnswerError("unexpected_answer", "The list does not end: a page has the cursor of an earlier page.")
    yield page
    if (nextCursor === null) return
    seen.add(nextCursor)
    cursor = nextCursor
  }
}
