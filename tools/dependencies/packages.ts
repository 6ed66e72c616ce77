/**
 * The packages of bun.lock, each with what is known of it: who needs it, and the license that the installed copy names.
 * A package for another platform is in the lockfile and not in `node_modules`; its license is not known here.
 */
import * as fs from "node:fs"
import * as path from "node:path"

export const root = path.resolve(import.meta.dir, "../..")

/** A package of the lockfile. */
export interface Package {
  /** Where it is below `node_modules`, as the lockfile writes it: `a`, or `a/b` for the copy of b that only a uses. */
  readonly key: string
  readonly name: string
  readonly version: string
  /** `sha512-` and base64, as the registry names it. */
  readonly integrity: string | undefined
  /** What its package.json says: an SPDX expression; undefined when it says none, or when the package is not installed. */
  readonly license: string | undefined
  readonly installed: boolean
  /** Whether it is needed when the program runs; the others are for development and tests. */
  readonly production: boolean
  /** Keys of what it depends on. */
  readonly dependencies: ReadonlyArray<string>
}

type Names = Readonly<Record<string, string>>
interface Wants {
  readonly dependencies?: Names
  readonly optionalDependencies?: Names
  readonly peerDependencies?: Names
  readonly devDependencies?: Names
}
interface Lockfile {
  readonly workspaces: Readonly<Record<"", Wants>>
  /** Name and version, registry, what it wants, integrity. */
  readonly packages: Readonly<Record<string, readonly [string, string, Wants, string?]>>
}

/** `a/@b/c` as the names `a` and `@b/c`. */
const names = (key: string): ReadonlyArray<string> => key.match(/(?:@[^/]+\/)?[^/]+/g) ?? []

const licenseOf = (manifest: Readonly<Record<string, unknown>>): string | undefined => {
  const { license } = manifest
  return typeof license === "string" && license !== "" ? license : undefined
}

/** Every package of the lockfile, by key. */
export const packages = (): ReadonlyMap<string, Package> => {
  // The lockfile's format is Bun's; what it lacks is missed below.
  const lock = Bun.JSONC.parse(fs.readFileSync(path.join(root, "bun.lock"), "utf8")) as Lockfile
  const keys = new Set(Object.keys(lock.packages))
  const wanted = (wants: Wants) => [
    ...new Set(Object.keys({ ...wants.dependencies, ...wants.optionalDependencies, ...wants.peerDependencies }))
  ]
  /** The copy that a package at `key` gets: its own, or that of the nearest package around it. */
  const resolve = (key: string, name: string): ReadonlyArray<string> => {
    for (let around = [...names(key)]; ; around = around.slice(0, -1)) {
      const found = [...around, name].join("/")
      if (keys.has(found)) return [found]
      // An optional peer that nobody installs.
      if (around.length === 0) return []
    }
  }
  const dependenciesOf = (key: string) => wanted(lock.packages[key]?.[2] ?? {}).flatMap((name) => resolve(key, name))

  const production = new Set<string>()
  const need = (key: string) => {
    if (production.has(key)) return
    production.add(key)
    dependenciesOf(key).forEach(need)
  }
  for (const name of wanted(lock.workspaces[""])) resolve("", name).forEach(need)

  return new Map(
    Object.entries(lock.packages).map(([key, [spec, , , integrity]]) => {
      const manifest = path.join(
        root,
        "node_modules",
        ...names(key)
          .flatMap((name) => [name, "node_modules"])
          .slice(0, -1),
        "package.json"
      )
      const installed = fs.existsSync(manifest)
      const one: Package = {
        key,
        name: spec.slice(0, spec.lastIndexOf("@")),
        version: spec.slice(spec.lastIndexOf("@") + 1),
        integrity,
        license: installed ? licenseOf(JSON.parse(fs.readFileSync(manifest, "utf8"))) : undefined,
        installed,
        production: production.has(key),
        dependencies: dependenciesOf(key)
      }
      return [key, one] as const
    })
  )
}
