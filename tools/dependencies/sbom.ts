/**
 * `bun run sbom [file]`: the components of the service, as a CycloneDX 1.6 JSON document. It is generated from bun.lock, so
 * it names every package with its published hash; licenses are those of the installed packages. The same
 * lockfile and commit give the same document.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import packageJson from "../../package.json" with { type: "json" }
import { licenseOf } from "./licenses.ts"
import { type Package, packages, root } from "./packages.ts"

/** A package's URL, https://github.com/package-url/purl-spec: the scope's @ is escaped. */
const purl = ({ name, version }: Pick<Package, "name" | "version">) => `pkg:npm/${name.replace("@", "%40")}@${encodeURIComponent(version)}`

const hashes = (integrity: string | undefined) => {
  const [, base64] = /^sha512-(.+)$/.exec(integrity ?? "") ?? []
  return base64 === undefined ? {} : { hashes: [{ alg: "SHA-512", content: Buffer.from(base64, "base64").toString("hex") }] }
}

const licenses = (one: Package) => {
  const license = licenseOf(one)
  if (license === undefined) return {}
  return { licenses: [/ (AND|OR|WITH) /.test(license) ? { expression: license } : { license: { id: license } }] }
}

/** Several packages can contain the same one; it is one component. */
const group = (name: string) => (name.startsWith("@") ? { group: name.slice(0, name.indexOf("/")) } : {})

/** The document. */
export const sbom = () => {
  const all = packages()
  const components = new Map<string, Package & { readonly refs: ReadonlySet<string> }>()
  for (const one of all.values()) {
    const ref = purl(one)
    const known = components.get(ref)
    const refs = new Set([...(known?.refs ?? []), ...one.dependencies.flatMap((key) => all.get(key) ?? []).map(purl)])
    components.set(ref, { ...one, production: one.production || known?.production === true, refs })
  }
  const self = purl({ name: packageJson.name, version: packageJson.version })
  const direct = Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies })
  const entries = [...components].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": self,
        name: packageJson.name,
        version: packageJson.version,
        description: packageJson.description,
        licenses: [{ license: { id: packageJson.license } }],
        purl: self
      }
    },
    components: entries.map(([ref, one]) => ({
      type: "library",
      "bom-ref": ref,
      ...group(one.name),
      name: one.name.slice(one.name.indexOf("/") + 1),
      version: one.version,
      // Needed by the program; only present on some platforms; for development and tests.
      scope: !one.production ? "excluded" : one.installed ? "required" : "optional",
      ...hashes(one.integrity),
      ...licenses(one),
      purl: ref
    })),
    dependencies: [
      {
        ref: self,
        dependsOn: direct
          .flatMap((name) => all.get(name) ?? [])
          .map(purl)
          .sort()
      },
      ...entries.map(([ref, { refs }]) => ({ ref, dependsOn: [...refs].sort() }))
    ]
  }
}

if (import.meta.main) {
  const file = path.resolve(process.argv[2] ?? path.join(root, "dist", "sbom.cdx.json"))
  const made = sbom()
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`)
  console.log(`${path.relative(process.cwd(), file)}: ${made.components.length} components`)
}
