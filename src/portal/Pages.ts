/**
 * The pages: one HTML document for every address of the portal, and the script and style that it is made of, built
 * by Bun when somebody first asks and kept for as long as the program runs. Files carry a hash of their content in
 * their name, so browsers keep them; the document is asked for anew each time. Nothing comes from another host, and
 * nothing runs that the document does not name: the policy allows the portal's own files, and style elements that
 * carry the nonce of this very answer (a dialog stops the page behind it from scrolling with one).
 */
import { randomBytes } from "node:crypto"
import * as path from "node:path"
import { HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { currentExchange } from "../http/Exchange.ts"
import { notFound, problem } from "../http/Problem.ts"

const ENTRY = path.resolve(import.meta.dir, "web/main.tsx")
const FILES = "/portal/files/"

interface File {
  readonly type: string
  readonly bytes: Uint8Array
}

interface Built {
  readonly files: ReadonlyMap<string, File>
  readonly scripts: ReadonlyArray<string>
  readonly styles: ReadonlyArray<string>
}

const build = async (): Promise<Built> => {
  const { logs, outputs, success } = await Bun.build({
    entrypoints: [ENTRY],
    target: "browser",
    minify: true,
    sourcemap: "none",
    naming: { entry: "portal-[hash].[ext]", asset: "portal-[hash].[ext]", chunk: "portal-[hash].[ext]" },
    define: { "process.env.NODE_ENV": '"production"' },
    jsx: { runtime: "automatic", development: false },
    throw: false
  })
  if (!success) throw new Error(`the portal's pages could not be built: ${logs.map(String).join("\n")}`)
  const files = new Map<string, File>()
  for (const output of outputs) {
    const type = output.path.endsWith(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8"
    files.set(FILES + path.basename(output.path), { type, bytes: Bun.gzipSync(await output.arrayBuffer()) })
  }
  const named = (ending: string) => [...files.keys()].filter((name) => name.endsWith(ending))
  return { files, scripts: named(".js"), styles: named(".css") }
}

const document = ({ scripts, styles }: Built, nonce: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="nonce" content="${nonce}">
<title>Custody portal</title>
<link rel="icon" href="data:,">
${styles.map((name) => `<link rel="stylesheet" href="${name}">`).join("\n")}
${scripts.map((name) => `<script type="module" src="${name}"></script>`).join("\n")}
</head>
<body><div id="portal"></div><noscript>The portal needs JavaScript.</noscript></body>
</html>
`

const policy = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

export class Pages extends Effect.Service<Pages>()("custody/portal/Pages", {
  sync: () => {
    let building: Promise<Built> | undefined
    const built = Effect.tryPromise({
      try: () => {
        building ??= build()
        building.catch(() => {
          building = undefined
        })
        return building
      },
      catch: (error) => error
    }).pipe(
      Effect.tapError((error) => Effect.logError("the portal's pages are missing", error)),
      Effect.mapError(() => problem("service_unavailable", "The portal's pages cannot be shown.", { headers: { "retry-after": "5" } }))
    )

    return {
      /** Builds what is not built yet, so that the first visitor does not wait. */
      prepare: Effect.ignore(built),

      /** What is at a path that is not one of the portal's API: a file, or the document. */
      answer: (method: string, target: string) =>
        Effect.gen(function* () {
          if (method !== "GET" && method !== "HEAD") {
            return yield* problem("method_not_allowed", `${method} is not allowed here.`, { headers: { allow: "GET, HEAD" } })
          }
          const { headers } = yield* currentExchange
          if (target.startsWith(FILES)) {
            const file = (yield* built).files.get(target)
            if (file === undefined) return yield* notFound()
            headers["cache-control"] = "public, max-age=31536000, immutable"
            return HttpServerResponse.uint8Array(file.bytes, { contentType: file.type, headers: { "content-encoding": "gzip" } })
          }
          const nonce = randomBytes(16).toString("base64")
          headers["content-security-policy"] = policy(nonce)
          return HttpServerResponse.raw(document(yield* built, nonce), { contentType: "text/html; charset=utf-8" })
        })
    }
  }
}) {
  static readonly layer = this.Default
}
