/**
 * Builds the portal's pages: for `bun run build` into `dist`, or with the path of a cache for an installation. File names contain
 * a hash of their content, so browsers cache them. Each file is kept as it is and compressed, where that is smaller.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import * as zlib from "node:zlib"
import { keep, root } from "../../runtime/builtFiles.ts"
import { type Encoding, encodings, MANIFEST, type Manifest, nameOf } from "./builtPages.ts"

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".woff2": "font/woff2"
}

const compress: Readonly<Record<Encoding, (bytes: Uint8Array) => Uint8Array>> = { br: zlib.brotliCompressSync, gzip: zlib.gzipSync }

const [, , cache] = process.argv
// The process that wants them is gone.
if (cache !== undefined) process.stdin.on("close", () => process.exit(1)).resume()

const { logs, outputs, success } = await Bun.build({
  entrypoints: [path.join(root, "src/portal/web/main.tsx")],
  target: "browser",
  minify: true,
  splitting: true,
  sourcemap: "none",
  naming: { entry: "portal-[hash].[ext]", asset: "[name]-[hash].[ext]", chunk: "part-[hash].[ext]" },
  // Fonts are separate files, not part of the styles: a browser loads only those that a page needs.
  external: ["*.woff2"],
  define: { "process.env.NODE_ENV": '"production"' },
  jsx: { runtime: "automatic", development: false, importSource: path.join(root, "src/portal/web") },
  throw: false
})
if (!success) throw new Error(logs.map(String).join("\n"))

const files = new Map<string, Uint8Array>()
/** Adds a file under a name with the hash of its content, which it returns. */
const add = (stem: string, extension: string, bytes: Uint8Array): string => {
  const name = `${stem}-${createHash("sha256").update(bytes).digest("hex").slice(0, 10)}${extension}`
  files.set(name, bytes)
  return name
}
for (const output of outputs) {
  if (output.path.endsWith(".css")) {
    const style = (await output.text()).replaceAll(/url\("?([^)"]+\.woff2)"?\)/g, (_, font: string) => {
      const file = Bun.resolveSync(font, import.meta.dir)
      return `url(${add(path.basename(file, ".woff2"), ".woff2", fs.readFileSync(file))})`
    })
    add("portal", ".css", new TextEncoder().encode(style))
  } else files.set(path.basename(output.path), new Uint8Array(await output.arrayBuffer()))
}

const named = (pattern: RegExp) => [...files.keys()].filter((name) => pattern.test(name))
const [entry = ""] = named(/^portal-\w+\.js$/)
const text = new TextDecoder().decode(files.get(entry))

const write = (folder: string) => {
  fs.mkdirSync(folder)
  const described = [...files].map(([name, bytes]) => {
    fs.writeFileSync(path.join(folder, name), bytes)
    const type = types[path.extname(name)] ?? "application/octet-stream"
    const smaller = (["br", "gzip"] as const).filter((encoding) => {
      // Fonts are compressed already.
      if (type.startsWith("font/")) return false
      const packed = compress[encoding](bytes)
      if (packed.byteLength >= bytes.byteLength) return false
      fs.writeFileSync(path.join(folder, name + encodings[encoding]), packed)
      return true
    })
    return [name, { type, encodings: smaller }] as const
  })
  const manifest: Manifest = {
    entry,
    imports: named(/^part-\w+\.js$/).filter((name) => new RegExp(`(?:from|import)\\s*"\\./${name}"`).test(text)),
    styles: named(/\.css$/),
    fonts: named(/^inter-latin-wght-normal/),
    files: Object.fromEntries(described)
  }
  fs.writeFileSync(path.join(folder, MANIFEST), JSON.stringify(manifest))
}

keep(nameOf(), cache === undefined ? "dist" : { cache }, write)
process.stdout.write(`${nameOf()}\n`)
process.exit(0)
