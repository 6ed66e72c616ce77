/** Files of a test, in a folder of their own. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** A fresh folder: `write` puts a file into it and returns where it is. */
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
