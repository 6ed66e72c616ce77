/**
 * The demo's screen. On a terminal: a spinner while something is under way, and a footer that stays at the bottom while
 * lines scroll above it. Elsewhere: plain lines. It uses few of the terminal's own colors, so that they are readable on
 * light and dark backgrounds; NO_COLOR turns them off.
 */
import { Duration, Effect, Exit } from "effect"
import { cut, left, right, span, styles } from "../terminal/text.ts"

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
/** Columns if there is no terminal. */
const PLAIN_WIDTH = 100

/** How a step is shown. */
interface Step<A> {
  /** Its result. */
  readonly show: (value: A) => string
  /** Its duration, if it began before it was shown. */
  readonly took?: (value: A) => Duration.Duration
  /** Its progress, while it runs. */
  readonly note?: () => string
}

export class Screen extends Effect.Service<Screen>()("custody/Screen", {
  scoped: Effect.gen(function* () {
    const out = process.stdout
    const live = out.isTTY === true && process.env.TERM !== "dumb"
    const style = styles(live && process.env.NO_COLOR === undefined)
    const columns = () => (live ? Math.max(40, out.columns) : PLAIN_WIDTH)
    /** The footer, and how many of its rows are on the screen. */
    let bottom: ReadonlyArray<string> = []
    let drawn = 0

    const erase = () => {
      if (drawn > 0) out.write(`\r${"\u001b[1A".repeat(drawn - 1)}\u001b[0J`)
      drawn = 0
    }
    const draw = () => {
      if (!live || bottom.length === 0) return
      out.write(bottom.map((row) => fit(row, columns() - 1)).join("\n"))
      drawn = bottom.length
    }
    const line = (text = "") => {
      erase()
      out.write(`${text}\n`)
      draw()
    }
    const footer = (rows: ReadonlyArray<string>) => {
      erase()
      bottom = rows
      draw()
    }
    yield* Effect.addFinalizer(() => Effect.sync(() => footer([])))

    return {
      style,
      columns,
      line,
      footer,
      /** Whether the screen can be redrawn. */
      live,
      /** Shows a running step, then its result and duration. */
      step: <A, E, R>(name: string, effect: Effect.Effect<A, E, R>, { note, show, took }: Step<A>): Effect.Effect<A, E, R> =>
        Effect.suspend(() => {
          const startedAt = performance.now()
          let frame = 0
          const spin = () =>
            footer([
              `  ${FRAMES[frame++ % FRAMES.length]} ${left(name, 11)}${left(span(performance.now() - startedAt), 8)}${style.dim(note?.() ?? "")}`
            ])
          const timer = live ? setInterval(spin, 100) : undefined
          return Effect.onExit(effect, (exit) =>
            Effect.sync(() => {
              clearInterval(timer)
              footer([])
              const done = Exit.isSuccess(exit)
              const ms = done && took !== undefined ? Duration.toMillis(took(exit.value)) : performance.now() - startedAt
              const room = Math.min(columns(), PLAIN_WIDTH) - 4 - 11 - 8
              line(
                `  ${done ? style.good("✓") : style.bad("✗")} ${left(name, 11)}${left(done ? show(exit.value) : "not done", room)}${style.dim(right(span(ms), 7))}`
              )
            })
          )
        })
    }
  })
}) {
  static readonly layer = this.Default
}

/** Cuts a row with control sequences: to plain text if it is too long. */
const fit = (row: string, columns: number): string => (Bun.stringWidth(row) <= columns ? row : cut(Bun.stripANSI(row), columns))
