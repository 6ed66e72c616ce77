/** Text as it is, to read and to copy. */
import { useId } from "react"
import { CopyButton } from "./Copy.tsx"

export interface CodeProps {
  readonly text: string
  readonly title: string
  /** Lines are not broken: what is too long is scrolled to. */
  readonly asItIs?: boolean
}

export const Code = ({ asItIs = false, text, title }: CodeProps) => {
  const id = useId()
  return (
    <figure className={asItIs ? "code-block as-it-is" : "code-block"}>
      <figcaption>
        <span id={id}>{title}</span>
        <CopyButton text={text} what={title} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <section tabIndex={0} aria-labelledby={id}>
        <pre>
          <code>{text}</code>
        </pre>
      </section>
    </figure>
  )
}

/** JSON text with its members on lines of their own; the text itself where it is none. Digits and order stay as they are. */
export const laidOut = (json: string): string => {
  let out = "",
    depth = 0
  const line = () => `\n${"  ".repeat(depth)}`
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g)) {
    if (token === "{" || token === "[") {
      depth++
      out += token + line()
    } else if (token === "}" || token === "]") {
      depth--
      out = /[[{]\s*$/.test(out) ? out.trimEnd() + token : out + line() + token
    } else out += token === "," ? token + line() : token === ":" ? ": " : token
  }
  return out
}
