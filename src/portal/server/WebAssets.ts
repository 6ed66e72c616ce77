/**
 * The portal's pages: one HTML document for every path, with its scripts, styles and fonts, built by Bun when somebody
 * first opens the portal and kept in memory. File names contain a hash of their content, so browsers cache them; the
 * document itself is not cached. Nothing is loaded from another host. The Content-Security-Policy allows the portal's own
 * files only, and style elements with this response's nonce (a dialog uses one to stop the page behind it from
 * scrolling).
 */
import { createHash, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import * as zlib from "node:zlib"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Data, Effect } from "effect"
import { notFound, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { accentOf, logoOf } from "./brand.ts"

const ENTRY = path.resolve(import.meta.dir, "../web/main.tsx")
const FILES = "/portal/files/"

/** The portal's own mark, and the icon of its pages. */
const MARK = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect x="1" y="1" width="22" height="22" rx="6.5" fill="COLOR"/><circle cx="12" cy="12" r="5" fill="none" stroke="#fff" stroke-width="2"/><path d="M12 12 15.6 8.4" stroke="#fff" stroke-width="2" stroke-linecap="round"/></svg>`

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".woff2": "font/woff2"
}

/** A file in its encodings; an encoding is absent if it is not smaller. */
interface File {
  readonly type: string
  readonly identity: Uint8Array
  readonly gzip?: Uint8Array
  readonly br?: Uint8Array
}

interface Built {
  readonly files: ReadonlyMap<string, File>
  readonly entry: string
  /** Scripts that the entry imports statically, preloaded by the document. */
  readonly imports: ReadonlyArray<string>
  readonly styles: ReadonlyArray<string>
  readonly fonts: ReadonlyArray<string>
}

const fileOf = (type: string, identity: Uint8Array): File =>
  type.startsWith("font/") || type === "image/png"
    ? { type, identity }
    : { type, identity, gzip: Bun.gzipSync(Buffer.from(identity)), br: zlib.brotliCompressSync(identity) }

/** The pages could not be built. */
class BuildFailed extends Data.TaggedError("BuildFailed")<{ readonly cause: unknown }> {}

const build = async (): Promise<Built> => {
  const { logs, outputs, success } = await Bun.build({
    entrypoints: [ENTRY],
    target: "browser",
    minify: true,
    splitting: true,
    sourcemap: "none",
    naming: { entry: "portal-[hash].[ext]", asset: "[name]-[hash].[ext]", chunk: "part-[hash].[ext]" },
    // Fonts are separate files, not part of the styles: a browser loads only those that a page needs.
    external: ["*.woff2"],
    define: { "process.env.NODE_ENV": '"production"' },
    jsx: { runtime: "automatic", development: false },
    throw: false
  })
  if (!success) throw new Error(`the portal's pages could not be built: ${logs.map(String).join("\n")}`)
  const files = new Map<string, File>()
  const add = (stem: string, extension: string, bytes: Uint8Array): string => {
    const name = `${FILES}${stem}-${createHash("sha256").update(bytes).digest("hex").slice(0, 10)}${extension}`
    files.set(name, fileOf(types[extension] ?? "application/octet-stream", bytes))
    return name
  }
  for (const output of outputs) {
    if (output.path.endsWith(".css")) {
      const style = (await output.text()).replaceAll(/url\("?([^)"]+\.woff2)"?\)/g, (_, font: string) => {
        const file = Bun.resolveSync(font, import.meta.dir)
        return `url(${add(path.basename(file, ".woff2"), ".woff2", fs.readFileSync(file))})`
      })
      add("portal", ".css", new TextEncoder().encode(style))
    } else {
      const type = types[path.extname(output.path)] ?? "application/octet-stream"
      files.set(FILES + path.basename(output.path), fileOf(type, new Uint8Array(await output.arrayBuffer())))
    }
  }
  const named = (pattern: RegExp) => [...files.keys()].filter((name) => pattern.test(name))
  const [entry = ""] = named(/portal-\w+\.js$/)
  const text = new TextDecoder().decode(files.get(entry)?.identity)
  return {
    files,
    entry,
    imports: named(/\/part-\w+\.js$/).filter((name) => new RegExp(`(?:from|import)\\s*"\\./${path.basename(name)}"`).test(text)),
    styles: named(/\.css$/),
    fonts: named(/inter-latin-wght-normal/)
  }
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;")

/** What a deployment adds to every document. */
interface Look {
  readonly name: string
  readonly logo: string
  readonly style: string
}

const document = ({ entry, fonts, imports, styles }: Built, { logo, name, style }: Look, nonce: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="nonce" content="${nonce}">
<meta name="portal" content="${escaped(name)}" data-logo="${logo}">
<title>${escaped(name)} portal</title>
<link rel="icon" href="${logo}">
${fonts.map((name) => `<link rel="preload" as="font" type="font/woff2" href="${name}" crossorigin>`).join("\n")}
${styles.map((name) => `<link rel="stylesheet" href="${name}">`).join("\n")}
${style === "" ? "" : `<style nonce="${nonce}">${style}</style>`}
${imports.map((name) => `<link rel="modulepreload" href="${name}">`).join("\n")}
<script type="module" src="${entry}"></script>
</head>
<body><div id="portal"></div><noscript>The portal needs JavaScript.</noscript></body>
</html>
`

const policy = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "font-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

export class WebAssets extends Effect.Service<WebAssets>()("custody/portal/WebAssets", {
  effect: Effect.gen(function* () {
    const settings = yield* Settings
    const given = yield* logoOf(settings)
    const logo = fileOf(
      given?.type ?? "image/svg+xml",
      given?.bytes ?? new TextEncoder().encode(MARK.replace("COLOR", settings.portalColor ?? "#2452c7"))
    )
    const logoPath = `${FILES}logo-${createHash("sha256").update(logo.identity).digest("hex").slice(0, 8)}.${logo.type === "image/png" ? "png" : "svg"}`
    const look: Look = {
      name: settings.portalName,
      logo: logoPath,
      style: settings.portalColor === undefined ? "" : accentOf(settings.portalColor)
    }
    let building: Promise<Built> | undefined
    const built = Effect.tryPromise({
      try: () => {
        building ??= build()
        building.catch(() => {
          building = undefined
        })
        return building
      },
      catch: (cause) => new BuildFailed({ cause })
    }).pipe(
      Effect.tapError(({ cause }) => Effect.logError("the portal's pages could not be built", cause)),
      Effect.mapError(() => problem("service_unavailable", "The portal's pages cannot be shown.", { headers: { "retry-after": "5" } }))
    )

    /** A file in the best encoding that the browser accepts. */
    const serve = (file: File) =>
      Effect.gen(function* () {
        const { headers: asked } = yield* HttpServerRequest.HttpServerRequest
        const { headers } = yield* currentRequest
        const encoding = (["br", "gzip"] as const).find((one) => (asked["accept-encoding"] ?? "").includes(one) && file[one] !== undefined)
        headers["cache-control"] = "public, max-age=31536000, immutable"
        headers["vary"] = "accept-encoding"
        // A logo that is opened directly cannot run scripts either.
        return HttpServerResponse.uint8Array(encoding === undefined ? file.identity : (file[encoding] ?? file.identity), {
          contentType: file.type,
          headers: encoding === undefined ? {} : { "content-encoding": encoding }
        })
      })

    return {
      /** Builds the pages in advance, so that the first visitor does not wait. */
      prepare: Effect.ignore(built),

      /** The icon, for browsers that request its traditional path. */
      icon: serve(logo),

      /** The response for a path outside the portal's API: a file, or the document. */
      answer: (method: string, target: string) =>
        Effect.gen(function* () {
          if (method !== "GET" && method !== "HEAD") {
            return yield* problem("method_not_allowed", `${method} is not allowed here.`, { headers: { allow: "GET, HEAD" } })
          }
          if (target === logoPath) return yield* serve(logo)
          if (target.startsWith(FILES)) {
            const file = (yield* built).files.get(target)
            return file === undefined ? yield* notFound() : yield* serve(file)
          }
          const { headers } = yield* currentRequest
          const nonce = randomBytes(16).toString("base64")
          headers["content-security-policy"] = policy(nonce)
          return HttpServerResponse.raw(document(yield* built, look, nonce), { contentType: "text/html; charset=utf-8" })
        })
    }
  })
}) {
  static readonly layer = this.Default
}
