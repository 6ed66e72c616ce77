/** The public keys that the service publishes, and the effect of a rotation of the master key. C-3. */
import { expect, test } from "bun:test"
import { randomBytes, verify } from "node:crypto"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { calculateJwkThumbprint, compactVerify, createLocalJWKSet, importJWK, type JSONWebKeySet } from "jose"
import { MasterKey, sealing } from "../../../src/runtime/crypto/MasterKey.ts"
import { SigningKeys } from "../../../src/runtime/crypto/SigningKeys.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import { Settings } from "../../../src/runtime/settings/Settings.ts"
import { cli, useApp } from "../../support/app.ts"
import { codeOf } from "../../support/problem.ts"
import { until } from "../../support/receiver.ts"

const app = useApp([])

/** Runs an effect with the signing key of a master key, on the app's database. */
const withKey = <A>(
  master: Buffer,
  effect: Effect.Effect<A, never, SigningKeys>,
  settings: ReadonlyArray<readonly [string, string]> = []
) =>
  Effect.runPromise(
    effect.pipe(
      Effect.provide(
        SigningKeys.layer.pipe(
          Layer.provide([
            Layer.succeed(MasterKey, sealing(master, undefined)),
            Database.layer(Redacted.make(app.databaseUrl), Database.pools.command),
            Layer.provide(Settings.layer, Layer.setConfigProvider(ConfigProvider.fromMap(new Map(settings))))
          ])
        )
      )
    )
  )

const master = randomBytes(32)
const start = async (master: Buffer, previous?: Buffer) => {
  app.main = await app.start(["api"], {
    MASTER_KEY: master.toString("base64"),
    ...(previous && { MASTER_KEY_PREVIOUS: previous.toString("base64") })
  })
}
const published = async (): Promise<JSONWebKeySet> => (await app.get("/v1/jwks.json")).json

const payload = { iss: "custody-data-service", hash: "ä" }

test("/v1/jwks.json returns the current signing key without authentication, and a JWS verifies with it", async () => {
  await start(master)
  const answer = await app.get("/v1/jwks.json")
  expect([answer.status, answer.headers.get("content-type"), answer.headers.get("cache-control")]).toEqual([
    200,
    "application/json",
    "public, max-age=300"
  ])
  const keys = answer.json.keys
  expect(keys).toEqual([{ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid: expect.any(String), x: expect.any(String) }])
  expect(keys[0].kid).toBe(await calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x: keys[0].x }))

  const [jws, again, bytes] = await withKey(
    master,
    Effect.flatMap(SigningKeys, (signing) =>
      Effect.all([signing.sign(payload), signing.sign(payload), signing.signBytes(Buffer.from("x"))])
    )
  )
  expect(again).toBe(jws)
  const verified = await compactVerify(jws, createLocalJWKSet(answer.json))
  expect([verified.protectedHeader, JSON.parse(Buffer.from(verified.payload).toString())]).toEqual([
    { alg: "EdDSA", kid: keys[0].kid },
    payload
  ])
  const key = await crypto.subtle.exportKey("spki", (await importJWK(keys[0], "EdDSA")) as CryptoKey)
  expect(verify(null, Buffer.from("x"), { key: Buffer.from(key), format: "der", type: "spki" }, bytes)).toBe(true)
  // A malformed request gets the same errors as on other paths.
  expect(codeOf(await app.get("/v1/jwks.json?nonsense=1"))).toBe("unknown_parameter")
  expect(codeOf(await app.request("POST", "/v1/jwks.json", { body: {} }))).toBe("method_not_allowed")
})

test("after a rotation the new signing key comes first, and old signatures still verify", async () => {
  const newer = randomBytes(32)
  const sign = Effect.flatMap(SigningKeys, (signing) => signing.sign(payload))
  const before = await withKey(master, sign)
  await app.main?.end()
  await start(newer, master)
  const after = await withKey(newer, sign)
  const keys = await published()
  for (const jws of [before, after]) await compactVerify(jws, createLocalJWKSet(keys))
  expect(keys.keys[0]?.kid).toBe(JSON.parse(Buffer.from(after.split(".")[0] ?? "", "base64url").toString()).kid)
  await app.main?.end()
  await start(newer)
  expect(await published()).toEqual(keys)
})

test("a process with another master key does not start, and publishes no key", async () => {
  const before = await published()
  const env = { ...app.env, MASTER_KEY: randomBytes(32).toString("base64") }
  const retired = { ...app.env, MASTER_KEY: master.toString("base64") }
  for (const [of, ...command] of [
    [env, "start", "--roles", "worker"],
    [env, "start", "--roles", "api"],
    [env, "statements", "seal"],
    [env, "secrets", "reencrypt"],
    [retired, "statements", "seal"]
  ] as const) {
    const { code, stderr } = await cli(command, of)
    expect([command, code]).toEqual([command, 3])
    expect(stderr).toContain("MASTER_KEY: read another key than the one that the database is used with")
  }
  expect(await published()).toEqual(before)
  // The operator says that the right one is lost.
  expect((await cli(["secrets", "reencrypt", "--key-lost"], env)).code).toBe(0)
  await until("the new key", async () => (await published()).keys.length === before.keys.length + 1)
  for (const of of [env, retired]) {
    expect((await cli(["secrets", "reencrypt", "--key-lost"], of)).code).toBe(0)
    expect((await cli(["statements", "seal"], of)).code).toBe(0)
  }
})

test("the issuer is the service's public address if it has one, and its name otherwise", async () => {
  const issuer = Effect.map(SigningKeys, (signing) => signing.issuer)
  expect(await withKey(randomBytes(32), issuer)).toBe("custody-data-service")
  expect(await withKey(randomBytes(32), issuer, [["PORTAL_BASE_URL", "https://custody.example.com"]])).toBe("https://custody.example.com")
})
