/**
 * The tests of a group one after the other, beside those of other groups: `test.concurrent(title, next(async () => …))` with
 * one `next` for each group. A test starts when the one before it has ended, whatever its result; its time limit begins earlier.
 */
export const inTurn = (): ((run: () => Promise<void>) => () => Promise<void>) => {
  let last = Promise.resolve()
  return (run) => () => {
    const mine = last.then(run)
    last = mine.catch(() => {})
    return mine
  }
}
