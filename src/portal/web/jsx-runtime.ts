/**
 * React's JSX functions for all pages (buildPages.ts), with bidirectional controls as escapes: a label or a memo with such a
 * character could otherwise show its own text, or the text around it, in another order. Values of fields stay as they are.
 */
import * as runtime from "react/jsx-runtime"

/** Characters with the Unicode property Bidi_Control. */
const CONTROLS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g

const escaped = (text: string): string =>
  text.replaceAll(CONTROLS, (one) => `\\u${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`)

const hasControl = (value: unknown): boolean =>
  typeof value === "string" ? value.search(CONTROLS) >= 0 : Array.isArray(value) && value.some(hasControl)

const shown = (value: unknown): unknown => (typeof value === "string" ? escaped(value) : Array.isArray(value) ? value.map(shown) : value)

/** Properties with text that a page shows or reads out. */
const texts = ["children", "title", "aria-label"] as const

const safe = (props: object): object => {
  const values = new Map<string, unknown>(Object.entries(props))
  const changed = texts.filter((name) => hasControl(values.get(name)))
  return changed.length === 0 ? props : { ...props, ...Object.fromEntries(changed.map((name) => [name, shown(values.get(name))])) }
}

type Create = (type: Parameters<typeof runtime.jsx>[0], props: object, key?: string) => ReturnType<typeof runtime.jsx>

export const jsx: Create = (type, props, key) => runtime.jsx(type, safe(props), key)
export const jsxs: Create = (type, props, key) => runtime.jsxs(type, safe(props), key)
export { Fragment } from "react/jsx-runtime"
