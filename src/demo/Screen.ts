/**
 * The demo's screen. On a terminal: a spinner while something is under way, and a footer that stays at the bottom
 * while lines scroll above it. Anywhere else: plain lines, one after the other. Colours are the terminal's own and
 * few, so that they read on light and on dark; NO_COLOR turns them off.
 */
import { Duration, Effect, Exit } from "effect"
import { cut, left, right, span, styles, widthOf } from "../terminal/text.ts"

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
/** Columns of what is not a terminal. */
const PLAIN_WIDTH = 100

/** How a step is told. */
interface Step<A> {
  /** What came of it. */
  readonly told: (value: A) => string
  /** How long it took, where it began before it was shown. */
  readonly took?: (value: A) => Duration.Duration
  /** What it is at, while it is under way. */
  readonly note?: () => string
}

export class Screen extends Effect.Service<Screen>()("custody/Screen", {
  scoped: Effect.gen(function* () {
    const out = process.stdout
    const live = out.isTTY === true && process.env.TERM !== "dumb"
    const style = styles(live && process.env.NO_COLOR === undefined)
    const columns = () => (live ? Math.max(40, out.columns) : PLAIN_WIDTH)
    /** What stays at the bottom, and how many rows of it stand on the screen. */
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
      /** Shows that something is under way, then what came of it and how long it took. */
      step: <A, E, R>(name: string, effect: Effect.Effect<A, E, R>, { note, told, took }: Step<A>): Effect.Effect<A, E, R> =>
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
                `  ${done ? style.good("✓") : style.bad("✗")} ${left(name, 11)}${left(done ? told(exit.value) : "not done", room)}${style.dim(right(span(ms), 7))}`
              )
            })
          )
        })
    }
  })
}) {
  static readonly layer = this.Default
}

/** Cuts a row that holds control sequences: as plain text where it is too long. */
const fit = (row: string, columns: number): string => (widthOf(row) <= columns ? row : cut(Bun.stripANSI(row), columns))
