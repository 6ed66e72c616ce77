/** The portal's pages are built once, by a process of their own, and kept by the hash of their sources. */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as zlib from "node:zlib"
import { Effect } from "effect"
import { type Encoding, encodings, MANIFEST, nameOf, pages } from "../../src/portal/server/builtPages.ts"
import { kept } from "../../src/runtime/builtFiles.ts"

const cache = fs.mkdtempSync(path.join(os.tmpdir(), "custody-pages-"))

test("are complete, compressed without a difference, and built once", async () => {
  const built = await Effect.runPromise(pages(cache))
  const folder = kept(nameOf(), cache) ?? ""
  const { mtimeMs } = fs.statSync(path.join(folder, MANIFEST))
  const named = [built.entry, ...built.imports, ...built.styles, ...built.fonts]
  expect(named.length).toBeGreaterThan(2)
  for (const name of named) expect(Object.keys(built.files)).toContain(name)
  const bytesOf = async (name: string, encoding?: Encoding) => Buffer.from(await built.contentOf(name, encoding).arrayBuffer())
  for (const [name, file] of Object.entries(built.files)) {
    const bytes = await bytesOf(name)
    expect(bytes.byteLength).toBeGreaterThan(0)
    for (const encoding of file.encodings) {
      const unpack = encoding === "br" ? zlib.brotliDecompressSync : zlib.gunzipSync
      expect(unpack(await bytesOf(name, encoding)).equals(bytes)).toBe(true)
    }
    expect(fs.readdirSync(folder)).toContain(`${name}${file.encodings[0] === undefined ? "" : encodings[file.encodings[0]]}`)
  }
  expect(built.files[built.entry]?.encodings).toEqual(["br", "gzip"])
  // Styles name fonts that are there, and nothing from elsewhere.
  const style = await built.contentOf(built.styles[0] ?? "").text()
  const fonts = [...style.matchAll(/url\("?([^)"]+\.woff2)"?\)/g)].map(([, url = ""]) => path.basename(url))
  expect(fonts.length).toBeGreaterThan(1)
  for (const font of fonts) expect(Object.keys(built.files)).toContain(font)

  await Effect.runPromise(pages(cache))
  expect(fs.statSync(path.join(folder, MANIFEST)).mtimeMs).toBe(mtimeMs)
  fs.rmSync(cache, { recursive: true, force: true })
})
