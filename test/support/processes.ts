/** Processes that a data folder's servers left running. Linux only. */
import * as fs from "node:fs"

/** Processes whose command line names the folder, or that run in it: embedded servers and their children. */
export const processesOf = (folder: string): ReadonlyArray<string> =>
  fs.readdirSync("/proc").flatMap((entry) => {
    try {
      const line = fs.readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ")
      const cwd = fs.readlinkSync(`/proc/${entry}/cwd`)
      return /^\d+$/.test(entry) && (line.includes(folder) || cwd.startsWith(folder)) ? [`${entry} ${line}`] : []
    } catch {
      return []
    }
  })
