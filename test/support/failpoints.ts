/**
 * Kills the program at a failpoint of its sources, as by `kill -9`. `FAIL_AT=name:n` kills at the n-th time that the place
 * is reached.
 *
 * `FAIL_AT=event-writer:n` counts the places between statements of those that record events: after the lock of an
 * organization's stream, before each statement that follows, before the commit, and after it.
 *
 * `FAIL_AT=transactions-move:n` kills before the n-th statement of a process from the first look for transactions to move on.
 */
import pg from "pg"
import { failpoint, onFailpoint } from "../../src/runtime/failpoint.ts"

const [wanted = "", nth = "1"] = (process.env["FAIL_AT"] ?? "").split(":")
let reached = 0

onFailpoint((name) => {
  // The signal is delivered before the call returns: no further statement runs.
  if (name === wanted && ++reached === Number(nth)) process.kill(process.pid, "SIGKILL")
})

type Query = (this: pg.Client, ...input: ReadonlyArray<unknown>) => unknown

if (wanted === "event-writer") {
  const query: Query = pg.Client.prototype.query
  const writing = new WeakSet<pg.Client>()
  const here = () => failpoint("event-writer")
  const recording: Query = function (...input) {
    const [first] = input
    const text = typeof first === "string" ? first : typeof first === "object" && first !== null ? String(Reflect.get(first, "text")) : ""
    if (/FROM event_streams\b.*FOR UPDATE/s.test(text)) writing.add(this)
    else if (writing.has(this)) here()
    if (!writing.has(this) || !/^\s*(COMMIT|ROLLBACK)/.test(text)) return Reflect.apply(query, this, input)
    writing.delete(this)
    const done = input.at(-1)
    if (typeof done !== "function") return Reflect.apply(query, this, input)
    const answered = (...answer: ReadonlyArray<unknown>) => {
      here()
      Reflect.apply(done, undefined, answer)
    }
    return Reflect.apply(query, this, [...input.slice(0, -1), answered])
  }
  Object.assign(pg.Client.prototype, { query: recording })
}

if (wanted === "transactions-move") {
  const query: Query = pg.Client.prototype.query
  let moving = false
  const counting: Query = function (...input) {
    const [first] = input
    const text = typeof first === "string" ? first : typeof first === "object" && first !== null ? String(Reflect.get(first, "text")) : ""
    moving ||= text.includes("pg_try_advisory_xact_lock")
    if (moving) failpoint("transactions-move")
    return Reflect.apply(query, this, input)
  }
  Object.assign(pg.Client.prototype, { query: counting })
}
