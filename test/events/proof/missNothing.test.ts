/**
 * What docs/guides/miss-nothing.md shows, taken from it as it stands: run against a real service it follows an entity's
 * events and proves them, and it refuses whatever was changed. Each language computes the published hashes of the test vectors.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import vectors from "../../../src/client/chain-vectors.json" with { type: "json" }
import { chainHash, emptyChain, verifyCheckpoint } from "../../../src/client/index.ts"
import { useApp } from "../../support/app.ts"
import { codeBlocks, documentText } from "../../support/document.ts"
import { failsBehindGateways } from "../../support/Gateway.ts"
import { hurried, lacks, linkClient, outcome, run, unless } from "../../support/languages.ts"
import { smallest, transaction, vault } from "../../support/records.ts"
import { useTampering } from "../../support/tampering.ts"

const app = useApp(["api"])
const text = documentText("docs/guides/miss-nothing.md")
const [typescript = ""] = codeBlocks(text, "ts")
const [goCode = ""] = codeBlocks(text, "go")

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-nothing-"))
const goEnvironment = { GOFLAGS: "-mod=mod", GOWORK: "off" }
const file = (name: string, content: string) => fs.writeFileSync(path.join(folder, name), content)

const proxy = useTampering(app)
let key = "",
  counter = 0

beforeAll(async () => {
  await app.feed(smallest(), { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
  linkClient(folder)
  file("vectors.json", JSON.stringify(vectors))
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Records events, one of them with text that languages write differently. Returns how many. */
const record = async (): Promise<number> => {
  const label = `€ <&> "\\/" \u2028 金庫 ${++counter}`
  await app.feed([...Array.from({ length: 3 }, () => transaction("vault_a", ++counter)), vault("vault_a", "entity_a", { label })])
  return 4
}

const environment = (place: string, url = proxy.url()) => ({
  CUSTODY_URL: url,
  CUSTODY_API_KEY: key,
  ENTITY: "entity_a",
  PLACE: path.join(folder, place)
})

/** Runs a consumer from its first checkpoint on, and against answers that were changed. */
const proves = async (command: ReadonlyArray<string>) => {
  const place = `${command.at(-1)?.replaceAll(/\W/g, "-")}.json`
  const consume = async (changed: (text: string) => string = (text) => text) => {
    proxy.tamper(changed)
    const { code, error, out } = await outcome(command, { cwd: folder, env: environment(place) })
    const events = out.match(/^event: evt_\w+$/gm)?.length ?? 0
    return code === 0 && /^verified: \d+ [0-9a-f]{64}$/m.test(out) ? events : `refused ${out}${error}`
  }
  const events = (edit: (data: Array<unknown>) => Array<unknown>) => (text: string) => {
    const page = JSON.parse(text)
    return Array.isArray(page.data) ? JSON.stringify({ ...page, data: edit(page.data) }) : text
  }
  expect(await consume()).toBe(0)
  const changes: { readonly [what: string]: (text: string) => string } = {
    "a byte": (text) => text.replace('"amount":"1"', '"amount":"2"'),
    "an event that is missing": events((data) => data.slice(1)),
    "an event that comes twice": events((data) => data.toSpliced(1, 0, data[1])),
    "two events that changed places": events((data) => data.toSpliced(0, 2, data[1], data[0])),
    "the count": (text) => text.replace(/"count":\d+/, '"count":1'),
    "the signature": (text) => text.replace(/("jws":"[^"]*)"/, (_, jws: string) => `${jws.slice(0, -8)}AAAAAAAA"`),
    "the entity": (text) => text.replace('{"entityId":"entity_a"', '{"entityId":"entity_z"'),
    "the key": (text) => text.replace(/"x":"[^"]*"/, `"x":"${"A".repeat(43)}"`)
  }
  await record()
  for (const [what, changed] of Object.entries(changes))
    expect([what, await consume(changed)]).toEqual([what, expect.stringMatching(/^refused /)])
  // What was refused has not moved its place.
  expect(await consume()).toBe(4)
  expect(await consume()).toBe(0)
  const earlier = (await app.get("/v1/event-checkpoints/latest?entityId=entity_a", key)).text
  await record()
  await record()
  // What no checkpoint covers yet is left for the next run, whoever made it up.
  const more = events((data) => [...data, ...data.slice(-3)])
  expect(await consume(more)).toBe(8)
  expect(await consume()).toBe(0)
  // A signed checkpoint that counts less than the stored one proves nothing.
  const old = (text: string) => (text.includes('"count":') ? earlier : text)
  expect(await consume(old)).toMatch(/^refused .*counts fewer events/s)
  await record()
  expect(await consume()).toBe(4)
}

test("the client agrees with the vectors: hashes, valid checkpoints and invalid ones", async () => {
  let hash = emptyChain()
  for (const [index, payload] of vectors.payloads.entries()) {
    hash = await chainHash(hash, payload)
    expect(Buffer.from(hash).toString("hex")).toBe(vectors.hashes[index] ?? "")
  }
  // What a consumer of the feed has is the parsed payload.
  for (const payload of vectors.payloads) expect(JSON.stringify(JSON.parse(payload))).toBe(payload)
  for (const checkpoint of vectors.checkpoints) expect(await verifyCheckpoint(checkpoint, "entity_1", vectors)).toBeUndefined()
  for (const { checkpoint, name } of vectors.invalid)
    expect([name, await verifyCheckpoint(checkpoint, "entity_1", vectors)]).toEqual([name, expect.any(String)])
})

test("the guide's consumer in TypeScript verifies every event, and refuses changed ones", async () => {
  file("consumer.ts", typescript)
  await proves([process.execPath, "consumer.ts"])
})

test.skipIf(lacks("go"))(`the guide's consumer in Go verifies every event, and refuses changed ones${unless("go")}`, async () => {
  file("main.go", goCode)
  file(
    "vectors_test.go",
    `package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

func TestVectors(t *testing.T) {
	text, err := os.ReadFile("vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		jwks
		Payloads, Hashes []string
		Checkpoints      []checkpoint
		Invalid          []struct {
			Name       string
			Checkpoint checkpoint
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	hash := make([]byte, 32)
	for index, payload := range vectors.Payloads {
		hash = nextHash(hash, []byte(payload))
		if hex.EncodeToString(hash) != vectors.Hashes[index] {
			t.Error(payload)
		}
	}
	for _, one := range vectors.Checkpoints {
		if err := verify(one, "entity_1", vectors.jwks); err != nil {
			t.Error(err)
		}
	}
	for _, one := range vectors.Invalid {
		if verify(one.Checkpoint, "entity_1", vectors.jwks) == nil {
			t.Error(one.Name, "verifies")
		}
	}
	if len(vectors.Payloads) == 0 || len(vectors.Checkpoints) == 0 || len(vectors.Invalid) == 0 {
		t.Error("there are no vectors")
	}
}
`
  )
  await run(["go", "mod", "init", "consumer"], { cwd: folder, env: goEnvironment })
  await run(["go", "test", "./..."], { cwd: folder, env: goEnvironment })
  await run(["go", "build", "-o", "consumer", "."], { cwd: folder, env: goEnvironment })
  await proves([path.join(folder, "consumer")])
  file("main.go", hurried(goCode))
  await run(["go", "build", "-o", "hurried", "."], { cwd: folder, env: goEnvironment })
  const at = (url: string) =>
    outcome([path.join(folder, "hurried")], { cwd: folder, env: environment("hurried.json", url), timeout: 60_000 })
  await failsBehindGateways(at)
})
