/**
 * The API reference at `/v1/docs`: Scalar, in the version that ships with `@effect/platform`, served by this service
 * only. It reads `/v1/openapi.json` and sends trial requests to this service only; the policy blocks fonts, proxies and
 * other hosts. Scalar creates style elements, so inline styles are allowed; scripts are files.
 */
import * as path from "node:path"
import { operations } from "./operations.ts"
import { bar, named, page } from "./page.ts"

/** Scalar as one script of several megabytes, loaded at the first request for the reference. */
const scalar = async (): Promise<string> => {
  const root = path.dirname(Bun.resolveSync("@effect/platform/package.json", import.meta.dir))
  const { javascript }: { readonly javascript: string } = await import(path.join(root, "dist/esm/internal/httpApiScalar.js"))
  return javascript
}

const start = `Scalar.createApiReference("#reference", {
  url: "/v1/openapi.json",
  theme: "default",
  withDefaultFonts: false,
  hideClientButton: true,
  telemetry: false,
  showToolbar: "never",
  persistAuth: false,
  authentication: { preferredSecurityScheme: "apiKey" },
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  hiddenClients: {
    c: true, clojure: true, csharp: true, dart: true, fsharp: true, http: true, java: true, kotlin: true, objc: true, ocaml: true,
    php: true, powershell: true, r: true, ruby: true, rust: true, swift: true,
    node: ["axios", "ofetch", "undici"], js: ["axios", "jquery", "ofetch", "xhr"], shell: ["httpie", "wget"],
    python: ["aiohttp", "httpx_async", "httpx_sync", "python3"]
  },
  customCss: ".scalar-app{--scalar-font:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;--scalar-color-accent:light-dark(#2452c7,#93b4ff)}"
})
`

/** The Content-Security-Policy of the page. */
export const policy = [
  "default-src 'none'",
  // Scalar's JSON hashing is WebAssembly; no script is evaluated from text.
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'"
].join("; ")

/** What the page shows until the script has built the reference. */
const list = `<div class="columns"><main><h1>API reference</h1><table>${operations
  .map(({ method, path, summary }) => `<tr><td>${method}</td><td><code>${path}</code></td><td>${Bun.escapeHTML(summary)}</td></tr>`)
  .join("")}</table></main></div>`

/** The page and the scripts that it loads, by path. */
export const reference = async (): Promise<{ readonly html: string; readonly files: ReadonlyMap<string, string> }> => {
  const javascript = await scalar()
  const [library, begin] = [named("scalar", "js", javascript), named("reference", "js", start)]
  const scripts = `<script defer src="${library}"></script>\n<script defer src="${begin}"></script>\n`
  const body = `${bar("/v1/docs")}<div id="reference">${list}</div><noscript><p>The reference needs JavaScript. <a href="/v1/openapi.json">The document</a> that it shows does not.</p></noscript>`
  return {
    html: page("API reference", body, scripts),
    files: new Map([
      [library, javascript],
      [begin, start]
    ])
  }
}
