/**
 * The portal's pages: one HTML document for every path, with its scripts, styles and fonts (builtPages.ts). File names contain a
 * hash of their content, so browsers cache them; the document itself is not cached. Nothing is loaded from another host. The
 * Content-Security-Policy allows the portal's own files only, and style elements with this response's nonce (a dialog uses one to
 * stop the page behind it from scrolling).
 */
import { createHash, randomBytes } from "node:crypto"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { notFound, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { accentOf, logoOf } from "./brand.ts"
import { type Encoding, type Manifest, type Pages, pages } from "./builtPages.ts"

const FILES = "/portal/files/"

/** The portal's own mark, and the icon of its pages. */
const MARK = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect x="1" y="1" width="22" height="22" rx="6.5" fill="COLOR"/><circle cx="12" cy="12" r="5" fill="none" stroke="#fff" stroke-width="2"/><path d="M12 12 15.6 8.4" stroke="#fff" stroke-width="2" stroke-linecap="round"/></svg>`

/** What a deployment adds to every document. */
interface Look {
  readonly name: string
  readonly logo: string
  readonly style: string
}

const document = ({ entry, fonts, imports, styles }: Manifest, { logo, name, style }: Look, nonce: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="nonce" content="${nonce}">
<meta name="portal" content="${Bun.escapeHTML(name)}" data-logo="${logo}">
<title>${Bun.escapeHTML(name)} portal</title>
<link rel="icon" href="${logo}">
${fonts.map((name) => `<link rel="preload" as="font" type="font/woff2" href="${FILES}${name}" crossorigin>`).join("\n")}
${styles.map((name) => `<link rel="stylesheet" href="${FILES}${name}">`).join("\n")}
${style === "" ? "" : `<style nonce="${nonce}">${style}</style>`}
${imports.map((name) => `<link rel="modulepreload" href="${FILES}${name}">`).join("\n")}
<script type="module" blocking="render" src="${FILES}${entry}"></script>
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
    const cache = (yield* DataDir).at("cache")
    const given = yield* logoOf(settings)
    const logo = {
      type: given?.type ?? "image/svg+xml",
      bytes: given?.bytes ?? new TextEncoder().encode(MARK.replace("COLOR", settings.portalColor ?? "#2452c7"))
    }
    const logoPath = `${FILES}logo-${createHash("sha256").update(logo.bytes).digest("hex").slice(0, 8)}.${logo.type === "image/png" ? "png" : "svg"}`
    const look: Look = {
      name: settings.portalName,
      logo: logoPath,
      style: settings.portalColor === undefined ? "" : accentOf(settings.portalColor)
    }
    let known: Pages | undefined
    const oneAtATime = (yield* Effect.makeSemaphore(1)).withPermits(1)
    const built = Effect.suspend(() => {
      if (known !== undefined) return Effect.succeed(known)
      return oneAtATime(
        Effect.suspend(() =>
          known !== undefined ? Effect.succeed(known) : Effect.tap(pages(cache), (found) => Effect.sync(() => (known = found)))
        )
      )
    }).pipe(
      Effect.tapError((cause) => Effect.logError("the portal's pages could not be built", cause)),
      Effect.mapError(() => problem("service_unavailable", "The portal's pages cannot be shown.", { headers: { "retry-after": "5" } }))
    )

    const logoFile = new Blob([logo.bytes])
    /** A file in one of its encodings, cached for good by default. All clients that read it slowly share one `Blob`. */
    const serve = (type: string, bytes: Blob, encoding?: Encoding, caching = "max-age=31536000, immutable") =>
      Effect.gen(function* () {
        const { headers } = yield* currentRequest
        headers["cache-control"] = `public, ${caching}`
        headers["vary"] = "accept-encoding"
        // A logo that is opened directly cannot run scripts either.
        return HttpServerResponse.raw(bytes, {
          contentType: type,
          contentLength: bytes.size,
          headers: encoding === undefined ? {} : { "content-encoding": encoding }
        })
      })

    /** A file in the best encoding that the browser accepts. */
    const file = (name: string) =>
      Effect.gen(function* () {
        const { contentOf, files } = yield* built
        const described = Object.hasOwn(files, name) ? files[name] : undefined
        if (described === undefined) return yield* notFound()
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const encoding = described.encodings.find((one) => (headers["accept-encoding"] ?? "").includes(one))
        return yield* serve(described.type, contentOf(name, encoding), encoding)
      })

    return {
      /** The icon, for browsers that request its traditional path, which stays the same when the logo changes. */
      icon: serve(logo.type, logoFile, undefined, "max-age=3600"),

      /** The response for a path outside the portal's API: a file, or the document. */
      answer: (method: string, target: string) =>
        Effect.gen(function* () {
          if (method !== "GET" && method !== "HEAD") {
            return yield* problem("method_not_allowed", `${method} is not allowed here.`, { headers: { allow: "GET, HEAD" } })
          }
          if (target === logoPath) return yield* serve(logo.type, logoFile)
          if (target.startsWith(FILES)) return yield* file(target.slice(FILES.length))
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
