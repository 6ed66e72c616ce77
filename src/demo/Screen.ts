/**
 * The demo's screen. On a terminal: a spinner while something is under way, and a footer that stays at the bottom
 * while lines scroll above it. Anywhere else: plain lines, one after the other. Colours are the terminal's own and
 * few, so that they read on light and on dark; NO_COLOR turns them off.
 */
import { Duration, Effect, Exit } from "effect"

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
/** Columns of what is not a terminal. */
const PLAIN_WIDTH = 100

/** Columns that a text takes, control sequences not counted. */
const widthOf = (text: string) => Bun.stringWidth(text)

/** The text in exactly or, where it is the last column, at most so many columns; what does not fit ends in `…`. */
export const cut = (text: string, columns: number): string => {
  if (widthOf(text) <= columns) return text
  let kept = ""
  for (const character of text) {
    if (widthOf(kept + character) > columns - 1) break
    kept += character
  }
  return `${kept}…`
}

/** Cut and padded on the right. */
export const left = (text: string, columns: number): string => {
  const fitting = cut(text, columns)
  return fitting + " ".repeat(columns - widthOf(fitting))
}

/** Cut and padded on the left. */
export const right = (text: string, columns: number): string => {
  const fitting = cut(text, columns)
  return " ".repeat(columns - widthOf(fitting)) + fitting
}

/** Milliseconds as people say them: `840 ms`, `2.1 s`, `3 min`. */
export const span = (ms: number): string =>
  ms < 1_000 ? `${Math.round(ms)} ms` : ms < 100_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`

/** How text is set off. */
export interface Styles {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  readonly link: (text: string) => string
}

const styles = (coloured: boolean): Styles => {
  const sgr = (on: number, off: number) => (text: string) => (coloured ? `\u001b[${on}m${text}\u001b[${off}m` : text)
  return { bold: sgr(1, 22), dim: sgr(2, 22), good: sgr(32, 39), bad: sgr(31, 39), link: sgr(4, 24) }
}

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
              `  ${FRAMES[frame++ % FRAMES.length]} ${left(name, 11)}${note?.() ?? ""} ${style.dim(span(performance.now() - startedAt))}`
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
