/** Colors of code blocks in guides, made once when a page is built. */
import { createRequire } from "node:module"
import { plainText } from "./sections.ts"

interface Highlighter {
  readonly getLanguage: (name: string) => unknown
  readonly highlight: (code: string, options: { readonly language: string }) => { readonly value: string }
}
// An import would bring the library's types, and with them those of a browser for the whole program.
const library: Highlighter = createRequire(import.meta.url)("highlight.js/lib/common")

/** Rendered HTML with the parts of its code blocks marked; code in other languages stays as it is. */
export const highlighted = (html: string): string =>
  html.replace(/<pre><code class="language-(\w+)">(.*?)<\/code>/gs, (block, language: string, code: string) =>
    library.getLanguage(language) === undefined ? block : `<pre><code>${library.highlight(plainText(code), { language }).value}</code>`
  )
