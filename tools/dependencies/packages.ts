/**
 * The packages of bun.lock, each with its dependencies and the license that the installed copy names. A package for another
 * platform is in the lockfile but not in `node_modules`; its license is not known here.
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
  /** `sha512-` and base64, as published by the registry. */
  readonly integrity: string | undefined
  /** The license in its package.json, an SPDX expression; undefined without one, or if the package is not installed. */
  readonly license: string | undefined
  readonly installed: boolean
  /** Whether the program needs it at run time; the others are for development and tests. */
  readonly production: boolean
  /** Keys of its dependencies. */
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
  /** Name and version, registry, dependencies, integrity. */
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
  // The format is Bun's; missing parts fail below.
  const lock = Bun.JSONC.parse(fs.readFileSync(path.join(root, "bun.lock"), "utf8")) as Lockfile
  const keys = new Set(Object.keys(lock.packages))
  const wanted = (wants: Wants) => [
    ...new Set(Object.keys({ ...wants.dependencies, ...wants.optionalDependencies, ...wants.peerDependencies }))
  ]
  /** The copy that a package at `key` resolves to: its own, or that of the nearest package around it. */
  const resolve = (key: string, name: string): ReadonlyArray<string> => {
    for (let around = [...names(key)]; ; around = around.slice(0, -1)) {
      const found = [...around, name].join("/")
      if (keys.has(found)) return [found]
      // An optional peer that is not installed.
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
