/** Files of a test in a temporary directory. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** A new directory: `write` creates a file in it and returns its path. */
export const temporaryFiles = () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-files-"))
  return {
    folder,
    write: (name: string, text: string): string => {
      fs.writeFileSync(path.join(folder, name), text)
      return path.join(folder, name)
    },
    remove: () => fs.rmSync(folder, { recursive: true, force: true })
  }
}
