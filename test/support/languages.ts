/**
 * Programs in other languages that tests run: consumers as in the documents. Missing tools and unreachable downloads skip
 * a test, with a message.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { cache } from "./servers.ts"

const root = path.resolve(import.meta.dir, "../..")

export interface Run {
  readonly cwd?: string
  readonly env?: { readonly [name: string]: string }
  readonly input?: string
  /** When it is ended, in ms. */
  readonly timeout?: number
}

/** Makes the client's sources the package `custody-data-client` for programs in a folder. */
export const linkClient = (folder: string): void => {
  const linked = path.join(folder, "node_modules/custody-data-client")
  fs.mkdirSync(linked, { recursive: true })
  fs.writeFileSync(path.join(linked, "package.json"), JSON.stringify({ type: "module", exports: "./index.ts" }))
  fs.writeFileSync(path.join(linked, "index.ts"), `export * from ${JSON.stringify(path.join(root, "src/client/index.ts"))}\n`)
}

/** A program that waits for an answer for 3 seconds instead of a minute. */
export const hurried = (text: string): string =>
  text.replaceAll(/\b60(?=[),_])/g, "3").replace(/(?<=Timeout: +)time\.Minute/, "3 * time.Second")

/** A folder with such a copy of a program of docs/examples. */
export const impatient = (program: string): string => {
  const folder = path.join(cache, "impatient")
  fs.mkdirSync(folder, { recursive: true })
  const text = fs.readFileSync(path.join(root, "docs/examples", program), "utf8")
  fs.writeFileSync(path.join(folder, program), hurried(text))
  return folder
}

/** Runs a command to its end. */
export const outcome = async (command: ReadonlyArray<string>, { cwd = root, env = {}, input, timeout = 0 }: Run = {}) => {
  const stdin = input === undefined ? "ignore" : new Blob([input])
  const child = Bun.spawn([...command], { cwd, env: { ...process.env, ...env }, stdin, stdout: "pipe", stderr: "pipe", timeout })
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  return { code, out, error: timeout > 0 && child.signalCode === "SIGTERM" ? `${error}i/o timeout: ended after ${timeout} ms` : error }
}

/** The output of a command; fails the test with the command's errors if it fails. */
export const run = async (command: ReadonlyArray<string>, options: Run = {}): Promise<string> => {
  const { code, error, out } = await outcome(command, options)
  if (code !== 0) throw new Error(`${command.join(" ")}:\n${out}${error}`)
  return out
}

/**
 * Messages of commands that cannot download at the moment. A package that does not exist is a failure instead, except from Maven
 * Central, of which a mirror may have a part.
 */
const offline =
  /from versions: none|Max retries exceeded|ConnectionError|name resolution|no such host|server misbehaving|dial tcp|i\/o timeout|TLS handshake|GOPROXY=off|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|Unknown host|Could not (?:transfer|find) artifact/

/** Why the tests of a language are skipped: a program or a package index is missing. Empty if they run. */
export const unlessFetched = async (what: string, fetchAll: () => Promise<unknown>): Promise<string> => {
  try {
    await fetchAll()
    return ""
  } catch (error) {
    if (!offline.test(String(error))) throw error
    return ` (skipped: ${what} cannot be reached)`
  }
}

export const lacks = (program: string): boolean => Bun.which(program) === null
/** Why tests that need a program are skipped; empty if it is installed. */
export const unless = (program: string): string => (lacks(program) ? ` (skipped: there is no ${program} on PATH)` : "")

/**
 * Makes a folder in the cache that is kept between runs. It is made under another name and renamed, so that it is never
 * incomplete.
 */
export const kept = async (folder: string, make: (fresh: string) => Promise<unknown>): Promise<void> => {
  if (fs.existsSync(folder)) return
  const fresh = `${folder}.${process.pid}`
  try {
    await make(fresh)
    // If two make it concurrently, the first one's is used.
    if (!fs.existsSync(folder)) fs.renameSync(fresh, folder)
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true })
  }
}

/** The name of a folder for these libraries. */
const nameOf = (libraries: ReadonlyArray<string>) => libraries.join("-").replaceAll(/==|@/g, "-")

/** A folder `node_modules` with these packages, kept between runs; or the reason why there is none. */
export const npm = async (packages: ReadonlyArray<string>): Promise<{ readonly modules: string; readonly without: string }> => {
  const home = path.join(cache, `npm-${nameOf(packages)}`)
  const modules = path.join(home, "node_modules")
  if (!fs.existsSync(home) && lacks("npm")) return { modules, without: unless("npm") }
  const without = await unlessFetched("the registry of npm", () =>
    kept(home, async (fresh) => {
      fs.mkdirSync(fresh, { recursive: true })
      fs.writeFileSync(path.join(fresh, "package.json"), "{}")
      await run(["npm", "install", "--no-audit", "--no-fund", ...packages], { cwd: fresh })
    })
  )
  return { modules, without }
}

/** A virtual environment of Python with these libraries, kept between runs; or the reason why there is none. */
export const python = async (libraries: ReadonlyArray<string>): Promise<{ readonly interpreter: string; readonly without: string }> => {
  const environment = path.join(cache, `verify-${nameOf(libraries)}`)
  const interpreter = path.join(environment, "bin", "python")
  if (fs.existsSync(environment)) return { interpreter, without: "" }
  if (lacks("python3")) return { interpreter, without: unless("python3") }
  if ((await outcome(["python3", "-c", "import venv, ensurepip"])).code !== 0)
    return { interpreter, without: " (skipped: Python has no venv with ensurepip; on Debian: apt install python3-venv)" }
  const without = await unlessFetched("the package index of Python", () =>
    kept(environment, async (fresh) => {
      await run(["python3", "-m", "venv", fresh])
      await run([path.join(fresh, "bin", "python"), "-m", "pip", "install", "--quiet", ...libraries])
    })
  )
  return { interpreter, without }
}

/** The SHA-256 of a folder's files, in the order of their names. */
const digestOf = (folder: string): string =>
  fs
    .readdirSync(folder)
    .sort()
    .reduce((hash, name) => hash.update(name).update(fs.readFileSync(path.join(folder, name))), createHash("sha256"))
    .digest("hex")

/**
 * A folder with the jars of an artifact of Maven Central and of what it depends on, kept between runs; or the reason why there is
 * none. They must have this digest.
 */
export const maven = async (
  group: string,
  artifact: string,
  version: string,
  digest: string
): Promise<{ readonly jars: string; readonly without: string }> => {
  const jars = path.join(cache, `${artifact}-${version}`)
  if (lacks("java") || (lacks("mvn") && !fs.existsSync(jars))) return { jars, without: unless("java") || unless("mvn") }
  const without = await unlessFetched("Maven Central", () =>
    kept(jars, async (fresh) => {
      const project = `${fresh}.xml`
      const coordinates = (group: string, artifact: string, version: string) =>
        `<groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version>`
      fs.writeFileSync(
        project,
        `<project><modelVersion>4.0.0</modelVersion>${coordinates("test", "test", "1")}
        <dependencies><dependency>${coordinates(group, artifact, version)}</dependency></dependencies></project>`
      )
      try {
        const copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", `-DoutputDirectory=${fresh}`]
        await run(["mvn", "-q", "-B", "-f", project, ...copy], { timeout: 240_000 })
      } finally {
        fs.rmSync(project)
      }
      if (digestOf(fresh) !== digest) throw new Error(`${artifact} ${version} has other jars than expected: ${digestOf(fresh)}`)
    })
  )
  return { jars, without }
}
