/** Preformatted text, with a copy button. */
import { useId } from "react"
import { CopyButton } from "./Copy.tsx"

export interface CodeProps {
  readonly text: string
  readonly title: string
  /** Lines are not wrapped; long ones scroll. */
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
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard */}
      <section tabIndex={0} aria-labelledby={id}>
        <pre>
          <code>{text}</code>
        </pre>
      </section>
    </figure>
  )
}

/** JSON text with one member per line; other text unchanged. Digits and order stay the same. */
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
