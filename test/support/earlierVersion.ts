/** An earlier version of the program, checked out beside this one, for tests of both at once. */
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "../..")

const run = (command: ReadonlyArray<string>, cwd: string) => {
  const { exitCode, stderr, stdout } = Bun.spawnSync([...command], { cwd, stdout: "pipe", stderr: "pipe" })
  return { ok: exitCode === 0, out: stdout.toString().trim(), error: stderr.toString().trim() }
}

/** Why a commit cannot be checked out here; undefined if it can. */
export const missing = (commit: string): string | undefined => {
  if (Bun.which("git") === null) return "git is not installed"
  if (!run(["git", "rev-parse", "--git-dir"], root).ok) return "this is not a clone of the repository"
  return run(["git", "cat-file", "-e", `${commit}^{commit}`], root).ok ? undefined : `this clone has no commit ${commit}; it may be shallow`
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
}
const dependenciesOf = (folder: string): string =>
  JSON.stringify((JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")) as Manifest).dependencies)

/**
 * Writes the commit's files below a folder, with dependencies: those of this version, or its own if it has others. Returns
 * the root of its sources.
 */
export const checkOut = (commit: string, folder: string): string => {
  const to = path.join(folder, commit)
  fs.mkdirSync(to)
  const archive = path.join(folder, `${commit}.tar`)
  for (const command of [
    ["git", "archive", "--output", archive, commit, "package.json", "bun.lock", "bunfig.toml", "tsconfig.json", "src", "workflows", "docs"],
    ["tar", "-xf", archive, "-C", to]
  ]) {
    const { error, ok } = run(command, root)
    if (!ok) throw new Error(`${command.join(" ")}: ${error}`)
  }
  // Exact versions of all dependencies are part of the comparison, because package.json names no ranges.
  if (dependenciesOf(to) === dependenciesOf(root)) fs.symlinkSync(path.join(root, "node_modules"), path.join(to, "node_modules"))
  else {
    const { error, ok } = run([process.execPath, "install", "--frozen-lockfile"], to)
    if (!ok) throw new Error(`bun install of ${commit}: ${error}`)
  }
  return to
}
