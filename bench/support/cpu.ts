/** CPU time and memory of processes, from Linux's /proc. */
import * as fs from "node:fs"

const TICKS = 100

const stat = (pid: number): ReadonlyArray<string> | undefined => {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    return text.slice(text.lastIndexOf(")") + 2).split(" ")
  } catch {
    return undefined
  }
}

const family = (root: number): ReadonlyArray<number> => {
  const parents = new Map<number, number>()
  for (const name of fs.readdirSync("/proc")) {
    const pid = Number(name)
    if (Number.isInteger(pid)) parents.set(pid, Number(stat(pid)?.[1]))
  }
  const found = [root]
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child)
  return found
}

/** The descendant of a process whose command line has the text. */
export const descendant = (root: number, text: string): number => {
  const found = family(root).find((pid) => fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text))
  if (found === undefined) throw new Error(`no process of ${root} is ${text}`)
  return found
}

/** CPU milliseconds that a process, its children, and those that have ended used so far. */
export const cpuMs = (roots: ReadonlyArray<number>): number =>
  roots
    .flatMap((root) => family(root))
    .reduce((sum, pid) => {
      const fields = stat(pid)
      return fields === undefined ? sum : sum + [11, 12, 13, 14].reduce((own, at) => own + Number(fields[at]), 0) * (1_000 / TICKS)
    }, 0)

/** CPU milliseconds that all processes of the machine used so far. */
export const machineCpuMs = (): number => {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] =
    fs.readFileSync("/proc/stat", "utf8").split("\n")[0]?.trim().split(/\s+/).slice(1).map(Number) ?? []
  return (user + nice + system + irq + softirq) * (1_000 / TICKS)
}

/** Resident memory of one process, in KB. */
export const residentKb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0)

/** Resident memory of one process, in MB. */
export const residentMb = (pid: number): number => Math.round(residentKb(pid) / 1_024)

/** CPU milliseconds of a running service by part so far; its embedded servers are children of its process. */
export const cpuOfService = (pid: number) => {
  const temporal = descendant(pid, "temporal"),
    postgres = descendant(pid, "bin/postgres")
  return () => {
    const all = cpuMs([pid])
    const temporalMs = cpuMs([temporal])
    const postgresMs = cpuMs([postgres])
    return { all, temporal: temporalMs, postgres: postgresMs, service: all - temporalMs - postgresMs }
  }
}
