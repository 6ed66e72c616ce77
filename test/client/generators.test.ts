/**
 * Clients that generators make from the served OpenAPI document: each is generated with the settings of docs/client.md,
 * compiled, and used against the service, also against a later version of it that knows more values and fields. The full form
 * (`bun run generators`) adds those of openapi-generator, which need Java and Maven.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { useApp } from "../support/app.ts"
import { codeBlocks, documentText } from "../support/document.ts"
import { kept, lacks, npm, python, run, unless, unlessFetched } from "../support/languages.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { smallest, transaction, vault } from "../support/records.ts"
import { cache } from "../support/servers.ts"

/** Each version is named in docs/client.md. */
const versions = {
  pythonClient: "0.29.1",
  oapiCodegen: "2.8.2",
  oapiRuntime: "1.9.0",
  typescript: "7.13.0",
  fetch: "0.17.0",
  generator: "7.25.0"
}
const OAPI_CODEGEN = `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v${versions.oapiCodegen}`
const TIMEOUT = 300_000

const programs = path.join(import.meta.dir, "generators")
const root = path.resolve(import.meta.dir, "../..")
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-generators-"))
const all = process.env["CUSTODY_GENERATORS"] === "all"

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))
let env: { readonly [name: string]: string } = {}
let later: ReturnType<typeof Bun.serve>
afterAll(async () => {
  await later?.stop(true)
  fs.rmSync(folder, { recursive: true, force: true })
})

/** What a later version of the service could answer: values and a field that the document does not have yet. */
const evolved = (text: string): string =>
  text
    .replaceAll('"status":"confirmed"', '"status":"settled_later"')
    .replaceAll('"code":"not_found"', '"code":"vanished"')
    .replaceAll('{"hash":', '{"addedLater":{"field":[1]},"hash":')
    .replaceAll('{"type":', '{"addedLater":null,"type":')

beforeAll(async () => {
  await app.feed([...smallest(), ...Array.from({ length: 250 }, (_, index) => transaction("vault_a", index))], {
    "x-record-events": "none"
  })
  const key = (await app.key("user_a")).secret
  const body = { url: receiver.url("/hook"), entityIds: ["entity_a"], eventKinds: ["vault.updated"], notificationEmail: "ops@example.com" }
  const { id } = (await app.request("POST", "/v1/webhooks", { key, body })).json
  await app.feed([vault("vault_a", "entity_a", { label: "Hot" })])
  await until("the delivery", async () => {
    const [delivery] = (await app.get(`/v1/webhooks/${id}/deliveries`, key)).json.data
    return delivery?.status === "DELIVERED" ? true : undefined
  })
  later = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const answer = await fetch(`${app.main?.baseUrl}${pathname}${search}`, { headers: { authorization: `Bearer ${key}` } })
      const type = answer.headers.get("content-type") ?? ""
      return new Response(evolved(await answer.text()), { status: answer.status, headers: { "content-type": type } })
    }
  })
  fs.writeFileSync(path.join(folder, "openapi.json"), (await app.get("/v1/openapi.json")).text)
  env = {
    BASE_URL: app.main?.baseUrl ?? "",
    LATER_URL: `http://127.0.0.1:${later.port}`,
    API_KEY: key,
    WEBHOOK_ID: id,
    WEBHOOK_URL: receiver.url("/made")
  }
})

/** What every program has to find. */
const expected = {
  vaults: ["Hot"],
  transactions: 250,
  webhook: ["ACTIVE", "whsec_", null],
  deliveries: [["DELIVERED", 200, null]],
  error: [404, "not_found"],
  later: ["settled_later", "1", "vanished"]
}

/** A folder with the document and a program, for a generator's client. */
const homeFor = (name: string, ...files: ReadonlyArray<string>): string => {
  const home = path.join(folder, name)
  fs.mkdirSync(home, { recursive: true })
  fs.copyFileSync(path.join(folder, "openapi.json"), path.join(home, "openapi.json"))
  for (const file of files) fs.copyFileSync(path.join(programs, file), path.join(home, file))
  return home
}

const section = documentText("docs/client.md").split("\n## Generated clients\n")[1]?.split("\n## ")[0] ?? ""

/** The commands of docs/client.md that begin with a word, each as a list of words. */
const documented = (first: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = codeBlocks(section, "sh").flatMap((block) => block.replaceAll(/\\\n\s*/g, "").split("\n"))
  const commands = lines.map((line) => line.trim().split(/\s+/)).filter(([word]) => word === first)
  expect([first, commands.length > 0]).toEqual([first, true])
  return commands
}

/** Runs the documented command of a generator, with the program that it is called by and the document at hand. */
const generate = async (first: string, program: ReadonlyArray<string>, cwd: string, more: { readonly [name: string]: string } = {}) => {
  for (const [, ...words] of documented(first)) await run([...program, ...words], { cwd, env: more })
}

const answerOf = async (command: ReadonlyArray<string>, cwd: string, more: { readonly [name: string]: string } = {}) => {
  const out = await run(command, { cwd, env: { ...env, ...more } })
  expect(JSON.parse(out.trim().split("\n").at(-1) ?? "")).toEqual(expected)
}

const { interpreter, without: withoutPython } = await python([`openapi-python-client==${versions.pythonClient}`])
const { modules, without: withoutNpm } = await npm([`openapi-typescript@${versions.typescript}`, `openapi-fetch@${versions.fetch}`])
const goEnvironment = { GOFLAGS: "-mod=mod", GOWORK: "off" }
const goHome = path.join(folder, "go")
const withoutGo = lacks("go")
  ? unless("go")
  : await unlessFetched("the module proxy of Go", async () => {
      fs.mkdirSync(path.join(goHome, "custody"), { recursive: true })
      await run(["go", "mod", "init", "consumer"], { cwd: goHome, env: goEnvironment })
      await run(["go", "get", `github.com/oapi-codegen/runtime@v${versions.oapiRuntime}`], { cwd: goHome, env: goEnvironment })
      await run(["go", "run", OAPI_CODEGEN, "-version"], { cwd: goHome, env: goEnvironment })
    })

/** openapi-generator, and its clients' folders, made by the two commands of the document. */
const jar = path.join(cache, `openapi-generator-${versions.generator}`, `openapi-generator-cli-${versions.generator}.jar`)
const made = async () => {
  const home = path.join(folder, "generator")
  if (fs.existsSync(home)) return home
  homeFor("generator")
  await generate("openapi-generator-cli", ["java", "-jar", jar], home)
  return home
}
const library = "org.openapitools:openapi-generator-cli"
const withoutJava = !all
  ? " (skipped: run it with `bun run generators`)"
  : unless("java") ||
    unless("mvn") ||
    (await unlessFetched("Maven Central", () =>
      kept(path.dirname(jar), (fresh) =>
        run(["mvn", "-q", "dependency:copy", `-Dartifact=${library}:${versions.generator}`, `-DoutputDirectory=${fresh}`])
      )
    ))

const requirements = ["pydantic==2.14.4", "urllib3==2.8.0", "python-dateutil==4.0.0", "typing-extensions==4.16.0"]
const generated = withoutJava === "" ? await python(requirements) : { interpreter, without: withoutJava }
test("docs/client.md names the versions that are tested", () => {
  for (const version of Object.values(versions)) expect(section).toContain(` ${version} `)
})

describe("a generated client compiles, works, and accepts what is added later", () => {
  test.skipIf(withoutPython !== "")(
    `by openapi-python-client${withoutPython}`,
    async () => {
      const home = homeFor("python", "pythonClient.py")
      await generate("openapi-python-client", [interpreter, "-m", "openapi_python_client"], home)
      await answerOf([interpreter, "pythonClient.py"], home)
    },
    TIMEOUT
  )

  test.skipIf(withoutGo !== "")(
    `by oapi-codegen${withoutGo}`,
    async () => {
      homeFor("go", "main.go")
      await generate("oapi-codegen", ["go", "run", OAPI_CODEGEN], goHome, goEnvironment)
      await run(["go", "vet", "./..."], { cwd: goHome, env: goEnvironment })
      await answerOf(["go", "run", "."], goHome, goEnvironment)
    },
    TIMEOUT
  )

  test.skipIf(withoutNpm !== "")(
    `by openapi-typescript${withoutNpm}`,
    async () => {
      const home = homeFor("typescript", "typescriptClient.ts")
      fs.symlinkSync(modules, path.join(home, "node_modules"))
      await generate("openapi-typescript", [path.join(modules, ".bin", "openapi-typescript")], home)
      const compilerOptions = {
        ...{ target: "ES2022", lib: ["ES2023", "DOM"], module: "ESNext", moduleResolution: "bundler", noEmit: true },
        ...{ strict: true, noUncheckedIndexedAccess: true, allowImportingTsExtensions: true, types: ["node"] },
        typeRoots: [path.join(root, "node_modules/@types")]
      }
      fs.writeFileSync(path.join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["typescriptClient.ts"] }))
      await run([process.execPath, path.join(root, "node_modules/typescript/bin/tsc"), "-p", "."], { cwd: home })
      await answerOf([process.execPath, "typescriptClient.ts"], home)
    },
    TIMEOUT
  )

  test.skipIf(withoutJava !== "")(
    `by openapi-generator for Java${withoutJava}`,
    async () => {
      const home = path.join(await made(), "java")
      fs.copyFileSync(path.join(programs, "Main.java"), path.join(home, "src/main/java/Main.java"))
      const skipped = ["-DskipTests", "-Dmaven.javadoc.skip=true", "-Dmaven.source.skip=true"]
      await run(["mvn", "-q", "package", ...skipped], { cwd: home })
      await answerOf(["java", "-cp", "target/classes:target/lib/*", "Main"], home)
    },
    TIMEOUT
  )

  test.skipIf(generated.without !== "")(
    `by openapi-generator for Python${generated.without}`,
    async () => {
      const home = path.join(await made(), "python")
      fs.copyFileSync(path.join(programs, "generatedPython.py"), path.join(home, "generatedPython.py"))
      await answerOf([generated.interpreter, "generatedPython.py"], home)
    },
    TIMEOUT
  )
})
