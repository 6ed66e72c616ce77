/**
 * What is built from the sources once and kept: the workflow bundle and the portal's pages. Each has a name with the hash of its
 * sources and is kept in `dist/` (by `bun run build`, for an image, where nothing is written later), beside the dependencies, or
 * in `DATA_DIR/cache` if neither is writable.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"

/** The folder of the repository, or of the image. */
export const root = path.resolve(import.meta.dir, "../..")

/** Where an image has it, and where an installation keeps it. */
export const DIST = path.join(root, "dist")
const BESIDE = path.join(root, "node_modules", ".cache", "custody")

/** The hash of a text and of files. */
export const hashOf = (text: string, files: ReadonlyArray<string>): string => {
  const hash = createHash("sha256").update(text)
  for (const file of files) hash.update(path.relative(root, file)).update(fs.readFileSync(file))
  return hash.digest("hex").slice(0, 16)
}

/** The path of what is kept under a name; undefined if it has to be built. `cache` is the folder of last resort. */
export const kept = (name: string, cache: string): string | undefined =>
  [DIST, BESIDE, cache].map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file))

/** Keeps a file or a folder, which `write` writes to the given path, in `dist` or in the first writable folder of an installation. */
export const keep = (name: string, where: "dist" | { readonly cache: string }, write: (to: string) => void): void => {
  for (const folder of where === "dist" ? [DIST] : [BESIDE, where.cache]) {
    const partial = path.join(folder, `${name}.${process.pid}`)
    try {
      fs.mkdirSync(folder, { recursive: true })
      write(partial)
      fs.renameSync(partial, path.join(folder, name))
      return
    } catch {
      // The folder is not writable, as in an image; the next one may be. Or another process was faster.
      fs.rmSync(partial, { recursive: true, force: true })
      if (fs.existsSync(path.join(folder, name))) return
    }
  }
}
