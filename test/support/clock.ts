/**
 * Shifts the clocks of running processes with libfaketime (Debian: `apt-get install libfaketime`). The monotonic clock is
 * not affected, as on a machine whose time is set.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** The library, if installed. */
const library = ["/usr/lib", "/usr/local/lib", "/usr/lib64"]
  .flatMap((folder) => (fs.existsSync(folder) ? [folder, ...fs.readdirSync(folder).map((name) => path.join(folder, name))] : []))
  .map((folder) => path.join(folder, "faketime", "libfaketimeMT.so.1"))
  .find((file) => fs.existsSync(file))

/** Whether clocks can be shifted on this machine. */
export const canShift = library !== undefined

export class Clock {
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-clock-"))

  constructor() {
    fs.chmodSync(this.#folder, 0o755)
    this.shift(0)
  }

  get #file(): string {
    return path.join(this.#folder, "shift")
  }

  /** Environment of the processes that go by this clock. */
  get env(): { readonly [name: string]: string } {
    return {
      LD_PRELOAD: library ?? "",
      FAKETIME_TIMESTAMP_FILE: this.#file,
      // Seconds after which a process looks at the file again.
      FAKETIME_CACHE_DURATION: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1"
    }
  }

  /** Sets it this many seconds ahead of the machine's, behind it where negative. Takes effect within about a second. */
  shift(seconds: number): void {
    fs.writeFileSync(`${this.#file}.new`, `${seconds < 0 ? "" : "+"}${seconds}\n`)
    fs.renameSync(`${this.#file}.new`, this.#file)
  }

  remove(): void {
    fs.rmSync(this.#folder, { recursive: true, force: true })
  }
}
