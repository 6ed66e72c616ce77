/** Rules on imports, file sizes and what rooms may see of each other. */
import { describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "..")
/** The wings of the house from the top down, each with its rooms from the top down. A file imports only from its room and from what stands below it. */
const house: ReadonlyArray<readonly [wing: string, ...rooms: ReadonlyArray<string>]> = [
  ["main"],
  ["cli", "commands", "doctor", "demo", "terminal"],
  ["app", "App", "roles", "Server", "Base", "documentation", "openapi", "Api", "platform"],
  ["portal"],
  ["client"],
  ["delivery", "routes", "dispatch", "sending", "notices", "recoveries", "deliveries", "webhooks", "gateway"],
  ["custody", "routes", "ledger", "statements", "catalog", "portfolio", "vaults"],
  ["events", "routes", "retention", "proof", "feed", "log"],
  ["access", "routes", "organizations", "keys", "audit", "entities", "visibility", "credentials", "limits"],
  ["http"],
  ["runtime", "temporal", "crypto", "processes", "telemetry", "embedded", "database", "settings", "builtFiles", "failpoint"],
  ["workflows"],
  ["values"]
]
const floors = house.flatMap(([wing, ...rooms]) => (rooms.length === 0 ? [wing] : rooms.map((room) => `${wing}/${room}`))).reverse()
const floorOf = (room: string) => floors.indexOf(room)

interface Import {
  readonly file: string
  readonly from: string
  readonly target: string
  readonly to: string
  readonly typeOnly: boolean
  /** Imported dynamically, by `import()`. */
  readonly later: boolean
}

const sources = ["src", "workflows"].flatMap((folder) =>
  [...new Bun.Glob("**/*.{ts,tsx}").scanSync({ cwd: path.join(root, folder) })].map((file) => path.join(folder, file))
)
const roomOf = (file: string) => {
  const [top = "", wing = "", room = ""] = file.replace(/\.tsx?$/, "").split(path.sep)
  if (top !== "src") return top
  return house.some(([name, ...rooms]) => name === wing && rooms.length > 0) ? `${wing}/${room}` : wing
}
const text = (file: string) => fs.readFileSync(path.join(root, file), "utf8")
const imports: ReadonlyArray<Import> = sources.flatMap((file) =>
  [
    ...text(file).matchAll(/(?:^|\n)\s*(?:import|export)\s+(type\s+)?[^"'\n]*?(?:\{[^}]*\}[^"'\n]*?)?from\s+"([^"]+)"|import\("([^"]+)"\)/g)
  ].map(([, type, named, dynamic]) => {
    const target = named ?? dynamic ?? ""
    const resolved = target.startsWith(".") ? path.join(path.dirname(file), target) : target
    return {
      file,
      from: roomOf(file),
      target: resolved,
      to: target.startsWith(".") ? roomOf(resolved) : "",
      typeOnly: type !== undefined,
      later: dynamic !== undefined
    }
  })
)
const local = imports.filter(({ to }) => to !== "" && to !== "package.json")

describe("architecture", () => {
  test("this test sees every import", () => {
    expect(sources.length).toBeGreaterThan(100)
    expect(imports.length).toBeGreaterThan(sources.length * 3)
  })

  test("every room is in the house", () => {
    expect([...new Set(local.flatMap(({ from, to }) => [from, to]))].filter((room) => floorOf(room) < 0)).toEqual([])
  })

  test("imports point down, from wing to wing and from room to room", () => {
    const upward = local.filter(
      ({ file, from, to }) =>
        from !== to &&
        floorOf(to) >= floorOf(from) &&
        // Handlers implement the contract that their room is part of: the only import that points up.
        !(path.basename(file) === "handlers.ts" && to === "app/Api")
    )
    expect(upward.map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
  })

  test("workflow code imports only Temporal's workflow libraries and itself", () => {
    const foreign = imports.filter(
      ({ from, target, to }) =>
        from === "workflows" && to !== "workflows" && !["@temporalio/workflow", "@temporalio/common"].includes(target)
    )
    expect(foreign.map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
  })

  test("the program imports only the contract and the types of the workflows", () => {
    const seen = local.filter(
      ({ from, target, to, typeOnly }) => from !== "workflows" && to === "workflows" && path.basename(target) !== "contract.ts" && !typeOnly
    )
    expect(seen.map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
  })

  test("only the worker sends to endpoints", () => {
    const outside = local.filter(({ from, to }) => to === "delivery/sending" && from !== "delivery/sending").map(({ file }) => file)
    expect(new Set(outside)).toEqual(new Set([path.join("src", "app", "roles", "worker.ts")]))
    const senders = local
      .filter(({ target, typeOnly }) => path.basename(target) === "webhookRequest.ts" && !typeOnly)
      .map(({ file }) => path.basename(file))
    expect(senders).toEqual(["WebhookClient.ts"])
  })

  test("there are no import cycles", () => {
    const targets = Map.groupBy(local, ({ file }) => file)
    const finished = new Set<string>()
    const cycles: Array<string> = []
    const follow = (file: string, trail: ReadonlyArray<string>) => {
      if (trail.includes(file)) cycles.push([...trail.slice(trail.indexOf(file)), file].join(" → "))
      if (trail.includes(file) || finished.has(file)) return
      for (const { target } of targets.get(file) ?? []) follow(target, [...trail, file])
      finished.add(file)
    }
    for (const file of sources) follow(file, [])
    expect(cycles).toEqual([])
  })

  /** The packages that a file loads before it runs, directly or indirectly. */
  const packagesOf = (root: string): ReadonlySet<string> => {
    const files = new Set([root])
    const packages = new Set<string>()
    for (const file of files) {
      for (const { target, to, ...one } of imports) {
        if (one.file !== file || one.typeOnly || one.later) continue
        if (to === "") packages.add(target)
        else files.add(target)
      }
    }
    return new Set([...packages].filter((name) => !/^(?:node:|bun)/.test(name)))
  }

  /** Packages without the names of their modules. */
  const named = (modules: ReadonlySet<string>): ReadonlyArray<string> =>
    [...new Set([...modules].map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name))].sort()

  test("modules of Effect's packages are imported one by one", () => {
    const whole = imports.filter(({ target, typeOnly }) => !typeOnly && /^@effect\/[a-z-]+$/.test(target))
    expect(whole.map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
  })

  test("a process loads the code of its roles only", () => {
    const role = (name: string) => packagesOf(path.join("src", "app", "roles", `${name}.ts`))
    expect([...role("worker")]).toContain("@temporalio/worker")
    const later = ["@temporalio/worker", "@simplewebauthn/server", "better-auth", "nodemailer"]
    for (const loaded of [packagesOf(path.join("src", "app", "App.ts")), role("api"), role("dispatcher")])
      expect(later.filter((name) => loaded.has(name))).toEqual([])
  })

  test("a command loads modules only when it runs", () => {
    const line = ["effect", "@effect/cli", "@effect/platform-bun"]
    expect(named(packagesOf(path.join("src", "main.ts")))).toEqual(line.sort())
    const commands = path.join("src", "cli", "commands", "run")
    const database = named(packagesOf(path.join("src", "app", "Base.ts")))
    expect(database).toEqual([
      "@effect/experimental",
      "@effect/sql",
      "@effect/sql-pg",
      "effect",
      "ipaddr.js",
      "lru-cache",
      "pg",
      "typeid-js"
    ])
    const small = {
      keys: ["@noble/hashes"],
      migrate: [],
      reencrypt: ["@effect/platform", "jose", "otpauth"],
      statements: ["canonicalize", "decimal.js", "jose"],
      users: ["@effect/platform"]
    }
    for (const [name, more] of Object.entries(small)) {
      const loaded = named(packagesOf(path.join(commands, `${name}.ts`)))
      expect([name, loaded.filter((one) => ![...line, ...database, ...more].includes(one))]).toEqual([name, []])
    }
  })

  test("every failpoint in the sources is armed by a fault test", () => {
    const failpoints = sources.flatMap((file) => [...text(file).matchAll(/\bfailpoint\("([a-z-]+)"\)/g)].map(([, name = ""]) => name))
    const folder = path.join("test", "faults")
    const tests = [...new Bun.Glob("*.ts").scanSync({ cwd: path.join(root, folder) })]
      .map((file) => text(path.join(folder, file)))
      .join("\n")
    expect(failpoints.length).toBeGreaterThan(8)
    expect(failpoints.filter((name) => !new RegExp(`"${name}[":]`).test(tests))).toEqual([])
  })

  test("the portal's pages import only types, CSV, file names and verification from the program", () => {
    const pages = path.join("src", "portal", "web")
    const forBrowsers = ["client/statements.ts", "client/signedClaims.ts", "values/csv.ts", "values/fileLabel.ts"].map((file) =>
      path.join("src", file)
    )
    const seen = local.filter(
      ({ file, target, typeOnly }) => file.startsWith(pages) && !target.startsWith(pages) && !typeOnly && !forBrowsers.includes(target)
    )
    expect(sources.filter((file) => file.startsWith(pages)).length).toBeGreaterThan(20)
    expect(seen.map(({ file, target }) => `${file} imports ${target}`)).toEqual([])
  })

  test("no handler and no route contains SQL", () => {
    const handlers = sources.filter((file) => /(?:handlers|Routes)\.ts$/.test(file))
    expect(handlers.length).toBeGreaterThan(7)
    expect(handlers.filter((file) => /\bsql(?:<[^>]*>)?`/.test(text(file)))).toEqual([])
  })

  test("no statement claims the type of its rows: schemas decode them", () => {
    expect(sources.filter((file) => text(file).includes("decodeRows(")).length).toBeGreaterThan(40)
    expect(sources.filter((file) => /\bsql<|\.query<|\.unsafe</.test(text(file)))).toEqual([])
  })

  test("only the ledger writes custody rows, and the deletion of an organization removes them", () => {
    const tables = "vaults|balances|transactions|deposit_addresses|assets|networks|vault_networks|organizations|entities|users|vault_roles"
    const writes = new RegExp(`\\b(?:INSERT INTO|UPDATE|DELETE FROM)\\s+(?:${tables})\\b`, "i")
    const writers = sources.filter((file) => writes.test(text(file)) && !file.includes("migrations"))
    expect(writers.length).toBeGreaterThan(0)
    expect(new Set(writers.map(roomOf))).toEqual(new Set(["custody/ledger", "access/organizations"]))
  })

  test("only the settings read the environment, except for variables in which a terminal describes itself", () => {
    const readers = sources.filter((file) => /(?<!")(?:process|Bun)\.env(?!\.(?:NO_COLOR|TERM)\b)/.test(text(file)))
    expect(readers.filter((file) => !["runtime/settings", "runtime/embedded"].includes(roomOf(file)))).toEqual([])
  })

  test("no file has more than 300 lines, except files generated from the contract", () => {
    const written = sources.filter((file) => !text(file).startsWith("// Made from the contract"))
    expect(written.filter((file) => text(file).split("\n").length > 301)).toEqual([])
  })
})
