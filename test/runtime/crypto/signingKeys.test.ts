/** The signing key's public half is stored once, even if many processes store it at the same time. C-3. */
import { expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { MasterKey, masterKeyLayer, sealing } from "../../../src/runtime/crypto/MasterKey.ts"
import { publish, SigningKeys } from "../../../src/runtime/crypto/SigningKeys.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import { DataDir } from "../../../src/runtime/embedded/DataDir.ts"
import { Settings } from "../../../src/runtime/settings/Settings.ts"
import { useApi } from "../../support/api.ts"

const app = useApi()

test("processes that publish their signing key at once all succeed, with different keys only one", async () => {
  const settings = Layer.provide(Settings.layer, Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(app.env)))))
  const common = Layer.mergeAll(
    Layer.provideMerge(Layer.provideMerge(masterKeyLayer, DataDir.layer), settings),
    Database.layer(Redacted.make(app.databaseUrl), { ...Database.pools.api, connections: 16 })
  )
  const one = Effect.zipRight(
    publish(),
    Effect.flatMap(SigningKeys, ({ jwks }) => jwks)
  ).pipe(Effect.provide(Layer.fresh(SigningKeys.layer)))
  const kids = await Effect.runPromise(
    Effect.gen(function* () {
      const seen: Array<string> = []
      for (let round = 0; round < 100; round++) {
        yield* Effect.promise(() => app.sql("DELETE FROM signing_keys"))
        const answers = yield* Effect.all(
          Array.from({ length: 8 }, () => one),
          { concurrency: "unbounded" }
        )
        seen.push(...answers.flatMap(({ keys }) => keys.map(({ kid }) => kid)))
      }
      yield* Effect.promise(() => app.sql("DELETE FROM signing_keys"))
      const others = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.isSuccess(Effect.provideService(publish(), MasterKey, sealing(randomBytes(32), undefined)))),
        { concurrency: "unbounded" }
      )
      expect(others.filter((stored) => stored)).toHaveLength(1)
      return seen
    }).pipe(Effect.provide(common))
  )
  expect(kids).toHaveLength(800)
  expect(new Set(kids).size).toBe(1)
})
