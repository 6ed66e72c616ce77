/** Rules 1 to 12 of the specification's section Authentication, by their numbers. */
import { beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { ApiKeys, type Choice } from "../../../src/access/keys/ApiKeys.ts"
import { type Answer, cli, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { asset, balance, entity, network, organization, transaction, user, vault } from "../../support/records.ts"

const app = useApp()
const vaults = ["vault_a", "vault_b", "vault_c"]

beforeAll(async () => {
  await app.feed([
    network("ethereum"),
    asset("ethereum/native"),
    organization("org_a", ["ethereum"]),
    organization("org_b", ["ethereum"]),
    entity("entity_a", "org_a"),
    entity("entity_b", "org_b"),
    ...vaults.map((id) => vault(id, "entity_a")),
    vault("vault_foreign", "entity_b"),
    ...[...vaults, "vault_foreign"].flatMap((id, index) => [transaction(id, index), balance(id, "ethereum/native", "1")]),
    user("user_a", "org_a", vaults),
    user("user_owner", "org_a", vaults, { organizationRole: "owner" }),
    user("user_b", "org_a", ["vault_a"])
  ])
})

/** An edit and a revocation by the command line's code, without starting a process. */
const edit = (id: string, change: Partial<Choice>) =>
  app.run(Effect.flatMap(ApiKeys, ({ update }) => update(id, change, { mayWiden: true })))
const revoke = (id: string) => app.run(Effect.flatMap(ApiKeys, ({ revoke }) => revoke(id)))

/** The output of creating a key on the command line. */
const create = async (...args: ReadonlyArray<string>) => {
  const made = await cli(["keys", "create", ...args], app.env)
  expect([made.code, made.stderr]).toEqual([0, ""])
  return JSON.parse(made.stdout)
}
const keys = async (...args: ReadonlyArray<string>) => {
  const { code, stderr, stdout } = await cli(["keys", ...args], app.env)
  expect([code, stderr]).toEqual([0, ""])
  return JSON.parse(stdout)
}
const outcome = ({ json, status }: Answer) => (json.code === undefined ? status : `${status} ${json.code}`)
const ask = async (target: string, key?: string, headers: { readonly [name: string]: string } = {}) =>
  outcome(await app.get(target, key, headers))
const seen = async (key: string) => (await app.walk("/v1/vaults", key)).map(({ id }) => id).sort()
const in_ = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()

describe("bearer tokens in the Authorization header", () => {
  test("a request with a key succeeds, and the scheme is case-insensitive", async () => {
    const { secret } = await app.key("user_a")
    for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer   "]) {
      expect([scheme, await ask("/v1/vaults", undefined, { authorization: `${scheme} ${secret}` })]).toEqual([scheme, 200])
    }
  })

  test("a request without one gets 401 with WWW-Authenticate: Bearer, wherever else it carries the key", async () => {
    const { secret } = await app.key("user_a")
    for (const headers of [
      {},
      { "x-api-key": secret },
      { authorization: "" },
      { authorization: `Basic ${Buffer.from(`${secret}:`).toString("base64")}` },
      { authorization: `Digest ${secret}` },
      { authorization: secret },
      { "proxy-authorization": `Bearer ${secret}` },
      { cookie: `authorization=Bearer ${secret}` }
    ]) {
      const answer = await app.get("/v1/vaults", undefined, headers)
      expect([headers, outcome(answer)]).toEqual([headers, "401 missing_credentials"])
      expect(answer.headers.get("www-authenticate")).toStartWith("Bearer")
    }
    expect(await ask(`/v1/vaults?api_key=${secret}`)).toBe("401 missing_credentials")
  })

  test("an unknown or malformed token gets 401 invalid_api_key, with the same response for every reason", async () => {
    const { secret } = await app.key("user_a")
    const typo = secret.replace(/.$/, (last) => (last === "0" ? "1" : "0"))
    const { secret: deleted, key } = await app.key("user_a")
    await app.sql("DELETE FROM api_keys WHERE id = $1", [key.id])
    const bodies = new Set<string>()
    for (const token of [
      "x",
      "cds_",
      typo,
      deleted,
      secret.toUpperCase(),
      `${secret}x`,
      `${secret}, Bearer ${secret}`,
      `${secret} ${secret}`,
      "null",
      "A".repeat(4_000)
    ]) {
      const answer = await app.get("/v1/vaults", undefined, { authorization: `Bearer ${token}`, "x-request-id": "same-request-id" })
      expect([token, outcome(answer)]).toEqual([token, "401 invalid_api_key"])
      expect(answer.headers.get("www-authenticate")).toStartWith("Bearer")
      bodies.add(answer.text)
    }
    expect(bodies.size).toBe(1)
  })
})

describe("keys and their users", () => {
  test("a key names only vaults on which its user has the Developer role", async () => {
    const refused = async (...args: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await cli(["keys", "create", "--scopes", "vault:read", ...args], app.env)
      // An unknown user is not wrong usage.
      expect([code, stdout]).toEqual([args.includes("user_nobody") ? 1 : 2, ""])
      return stderr.trim()
    }
    expect(
      await Promise.all([
        refused("--user", "user_b", "--vaults", "vault_a,vault_b"),
        refused("--user", "user_a", "--vaults", "vault_foreign"),
        refused("--user", "user_nobody", "--all-vaults"),
        refused("--user", "user_a", "--all-vaults", "--expires", "2020-01-01"),
        refused("--user", "user_a")
      ])
    ).toEqual([
      "The user has no Developer role on vault_b.",
      "The user has no Developer role on vault_foreign.",
      "There is no user user_nobody.",
      "--expires: read “2020-01-01”, which is in the past. To revoke a key now, use `custody keys revoke`.",
      "Give a vault allowlist: --vaults id,id or --all-vaults."
    ])
  })

  test("no operation of the API creates a key", async () => {
    const { secret } = await app.key("user_owner")
    for (const path of ["/v1/keys", "/v1/api-keys", "/v1/api_keys", "/keys"]) {
      expect(outcome(await app.request("POST", path, { key: secret, body: { scopes: ["vault:read"] } }))).toBe("404 not_found")
    }
  })
})

describe("what is chosen at a key's creation", () => {
  test("scopes, vaults, addresses, expiry and label are chosen and printed as JSON", async () => {
    const made = await create(
      ...["--user", "user_a", "--scopes", "webhook:read,vault:read", "--vaults", "vault_a,vault_b", "--label", "Böhm & Söhne"],
      ...["--ips", "203.0.113.77/24,2001:db8::1", "--expires", "2030-01-31T12:00:00+01:00"]
    )
    expect(made).toEqual({
      id: expect.stringMatching(/^key_[0-9a-z]{26}$/),
      secret: expect.stringMatching(/^cds_[0-9A-Za-z]{49}$/),
      userId: "user_a",
      label: "Böhm & Söhne",
      scopes: ["vault:read", "webhook:read"],
      vaultIds: ["vault_a", "vault_b"],
      ipAllowlist: ["203.0.113.0/24", "2001:db8::1/128"],
      expiresAt: "2030-01-31T11:00:00.000Z",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    })
  })

  test("a key expires after 365 days unless a duration, a time or never is chosen", async () => {
    const base = ["--user", "user_a", "--scopes", "vault:read", "--all-vaults"]
    const days = ({ createdAt, expiresAt }: { createdAt: string; expiresAt: string }) =>
      (Date.parse(expiresAt) - Date.parse(createdAt)) / 86_400_000
    const [usual, ninety, seconds, never] = await Promise.all([
      create(...base),
      create(...base, "--expires", "90d"),
      create(...base, "--expires", "30s"),
      create(...base, "--expires", "never")
    ])
    expect(days(usual)).toBeCloseTo(365, 2)
    expect(days(ninety)).toBeCloseTo(90, 2)
    expect(days(seconds) * 86_400).toBeCloseTo(30, -1)
    expect(never.expiresAt).toBeNull()
    expect([usual.vaultIds, usual.ipAllowlist, usual.label]).toEqual([null, [], ""])
  })

  test("each scope permits its own paths and no others", async () => {
    const reader = await app.key("user_a", { scopes: ["vault:read"] })
    const webhooks = await app.key("user_a", { scopes: ["webhook:read", "webhook:manage"] })
    for (const list of ["/v1/vaults", "/v1/assets", "/v1/networks"]) {
      expect([list, await ask(list, reader.secret)]).toEqual([list, 200])
      expect([list, await ask(list, webhooks.secret)]).toEqual([list, "403 insufficient_scope"])
    }
    for (const path of ["", "/balances", "/transactions", "/addresses"]) {
      expect([path, await ask(`/v1/vaults/vault_a${path}`, reader.secret)]).toEqual([path, 200])
      expect([path, await ask(`/v1/vaults/vault_a${path}`, webhooks.secret)]).toEqual([path, "404 not_found"])
    }
  })
})

describe("the secret of a key, shown once and stored as a hash", () => {
  test("list, update and revoke do not show it, and the database does not contain it", async () => {
    const made = await create("--user", "user_a", "--scopes", "vault:read", "--all-vaults", "--label", "kept as a hash")
    expect(await ask("/v1/vaults", made.secret)).toBe(200)
    const shown = [
      await keys("list"),
      await keys("list", "--user", "user_a"),
      await keys("update", made.id, "--label", "x"),
      await keys("revoke", made.id)
    ]
    expect(shown[0].map(({ id }: { id: string }) => id)).toContain(made.id)
    for (const one of shown) expect(JSON.stringify(one)).not.toContain(made.secret.slice(4, 20))
    for (const one of shown[1]) expect(Object.keys(one)).not.toContain("secret")

    const tables = await app.sql("SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'public'")
    expect(tables.length).toBeGreaterThan(10)
    for (const { name } of tables) {
      const [{ dump } = {}] = await app.sql(`SELECT coalesce(string_agg(t::text, E'\\n'), '') AS dump FROM ${name} t`)
      for (const part of [made.secret, made.secret.slice(4, 24), made.secret.slice(20, 47), Buffer.from(made.secret).toString("hex")]) {
        expect([name, String(dump).includes(part)]).toEqual([name, false])
      }
    }
    const [{ hash } = {}] = await app.sql("SELECT encode(secret_hash, 'hex') AS hash FROM api_keys WHERE id = $1", [made.id])
    expect(hash).toBe(createHash("sha256").update(made.secret).digest("hex"))
  })
})

describe("expired keys", () => {
  test("a key is rejected from the moment that it expires", async () => {
    const { secret } = await app.key("user_a", { expiresAt: in_(-1) })
    const answer = await app.get("/v1/vaults", secret)
    expect(outcome(answer)).toBe("401 expired_api_key")
    expect(answer.headers.get("www-authenticate")).toStartWith("Bearer")
    const short = await app.key("user_a", { expiresAt: in_(1) })
    const expiresAt = Date.parse(short.key.expiresAt ?? "")
    const early = await ask("/v1/vaults", short.secret)
    // On a machine that paused, the key may have expired before the request.
    if (Date.now() < expiresAt) expect(early).toBe(200)
    await Bun.sleep(Math.max(0, expiresAt - Date.now()) + 20)
    expect(await ask("/v1/vaults", short.secret)).toBe("401 expired_api_key")
  })

  test("only the holder of the secret learns that a key is expired or revoked", async () => {
    const { secret } = await app.key("user_a", { expiresAt: in_(-1) })
    const other = (await app.key("user_a")).secret
    await app.sql("DELETE FROM api_keys WHERE secret_hash = $1", [createHash("sha256").update(other).digest()])
    expect(await ask("/v1/vaults", secret)).toBe("401 expired_api_key")
    expect(await ask("/v1/vaults", other)).toBe("401 invalid_api_key")
  })
})

describe("the IP allowlist", () => {
  test("a request from an address outside it gets 403 ip_not_allowed, which names the client's address", async () => {
    const { secret } = await app.key("user_a", { ipAllowlist: ["203.0.113.0/24"] })
    for (const path of ["/v1/vaults", "/v1/vaults/vault_a", "/v1/vaults/vault_foreign", "/v1/networks", "/v1/nothing"]) {
      const answer = await app.get(path, secret)
      expect([path, outcome(answer)]).toEqual([path, "403 ip_not_allowed"])
      expect(answer.json.detail).toContain("127.0.0.1")
      expect(answer.text).not.toContain("203.0.113")
    }
    for (const inside of [["127.0.0.0/8"], ["127.0.0.1/32"], ["203.0.113.0/24", "127.0.0.1/32"], ["0.0.0.0/0"], []]) {
      expect([inside, await ask("/v1/vaults", (await app.key("user_a", { ipAllowlist: inside })).secret)]).toEqual([inside, 200])
    }
    for (const outside of [["::/0"], ["127.0.0.2/32"], ["126.0.0.0/8"]]) {
      expect([outside, await ask("/v1/vaults", (await app.key("user_a", { ipAllowlist: outside })).secret)]).toEqual([
        outside,
        "403 ip_not_allowed"
      ])
    }
  })
})

describe("revocation", () => {
  test("under load, no request that begins after the revocation was acknowledged succeeds in any process", async () => {
    const second = await app.start(["api"])
    for (let round = 0; round < 8; round++) {
      const { key, secret } = await app.key("user_a")
      let revokedAt = Number.POSITIVE_INFINITY
      const late: Array<number> = []
      let before = 0,
        over = false
      const hammer = async (baseUrl: string | undefined) => {
        for (let after = 0; after < 5 && !over; ) {
          const begun = performance.now()
          const { status } = await fetch(`${baseUrl}/v1/vaults`, { headers: { authorization: `Bearer ${secret}` } })
          if (begun > revokedAt && status !== 503) {
            late.push(status)
            after++
          } else if (status === 200) before++
        }
      }
      const load = [app.main?.baseUrl, second.baseUrl].flatMap((url) => [hammer(url), hammer(url), hammer(url), hammer(url)])
      try {
        await until("requests that succeed", () => before > 0)
        await Bun.sleep(round)
        await revoke(key.id)
        revokedAt = performance.now()
        await Promise.all(load)
      } finally {
        over = true
      }
      expect(before).toBeGreaterThan(0)
      expect(new Set(late)).toEqual(new Set([401]))
    }
  })

  test("a revoked key gets 401 revoked_api_key permanently, and no edit restores it", async () => {
    const { key, secret } = await app.key("user_a")
    const revoked = await keys("revoke", key.id)
    expect([revoked.revokedReason, typeof revoked.revokedAt]).toEqual(["revoked", "string"])
    expect(await ask("/v1/vaults", secret)).toBe("401 revoked_api_key")
    expect(await revoke(key.id)).toEqual(revoked)
    await expect(edit(key.id, { expiresAt: null })).rejects.toThrow("was revoked and cannot be edited")
    expect(await ask("/v1/vaults", secret)).toBe("401 revoked_api_key")
  })
})

describe("secrets that cannot be changed", () => {
  test("editing a key keeps its secret, and no command sets or renews one", async () => {
    const { key, secret } = await app.key("user_a")
    await edit(key.id, { label: "edited", scopes: ["vault:read"] })
    expect(await ask("/v1/vaults", secret)).toBe(200)
    const commands = [
      ["keys", "update", key.id, "--secret", "cds_mine"],
      ["keys", "rotate", key.id]
    ]
    expect((await Promise.all(commands.map((args) => cli(args, app.env)))).map(({ code }) => code)).toEqual([2, 2])
    const [{ secret_hash: hash } = {}] = await app.sql("SELECT encode(secret_hash, 'hex') AS secret_hash FROM api_keys WHERE id = $1", [
      key.id
    ])
    expect(hash).toBe(createHash("sha256").update(secret).digest("hex"))
  })
})

describe("edits of scopes, vault allowlist and IP allowlist", () => {
  test("each edit applies to the next request and leaves the other fields unchanged", async () => {
    const { key, secret } = await app.key("user_a")
    expect(await seen(secret)).toEqual(vaults)

    await edit(key.id, { vaultIds: ["vault_b"] })
    expect(await seen(secret)).toEqual(["vault_b"])
    expect(await ask("/v1/vaults/vault_a", secret)).toBe("404 not_found")
    await edit(key.id, { vaultIds: null })
    expect(await seen(secret)).toEqual(vaults)

    await edit(key.id, { scopes: ["webhook:read"] })
    expect(await ask("/v1/vaults", secret)).toBe("403 insufficient_scope")
    await edit(key.id, { scopes: ["vault:read"] })
    expect(await ask("/v1/vaults", secret)).toBe(200)

    await edit(key.id, { ipAllowlist: ["203.0.113.0/24"] })
    expect(await ask("/v1/vaults", secret)).toBe("403 ip_not_allowed")
    expect(await edit(key.id, { ipAllowlist: ["127.0.0.1"] })).toMatchObject({
      id: key.id,
      userId: "user_a",
      label: "test",
      scopes: ["vault:read"],
      vaultIds: null,
      ipAllowlist: ["127.0.0.1/32"],
      expiresAt: null
    })
    expect(await ask("/v1/vaults", secret)).toBe(200)
  })

  test("the expiry can be shortened, extended and cleared", async () => {
    const { key, secret } = await app.key("user_a", { expiresAt: in_(3_600) })
    await edit(key.id, { expiresAt: in_(-1) })
    expect(await ask("/v1/vaults", secret)).toBe("401 expired_api_key")
    await edit(key.id, { expiresAt: in_(7_200) })
    expect(await ask("/v1/vaults", secret)).toBe(200)
    expect((await edit(key.id, { expiresAt: null })).expiresAt).toBeNull()
    expect(await ask("/v1/vaults", secret)).toBe(200)
  })

  test("the command line edits every part of a key while the service runs", async () => {
    const { key, secret } = await app.key("user_a")
    const closed = await keys(
      ...["update", key.id, "--scopes", "vault:read", "--vaults", "vault_c", "--ips", "203.0.113.0/24, ::/0"],
      ...["--expires", "400d", "--label", "edited"]
    )
    expect(closed).toMatchObject({
      scopes: ["vault:read"],
      vaultIds: ["vault_c"],
      ipAllowlist: ["203.0.113.0/24", "::/0"],
      label: "edited"
    })
    expect((Date.parse(closed.expiresAt) - Date.now()) / 86_400_000).toBeCloseTo(400, 1)
    expect(await ask("/v1/vaults", secret)).toBe("403 ip_not_allowed")
    const open = await keys("update", key.id, "--no-ips", "--all-vaults", "--expires", "never")
    expect(open).toMatchObject({ scopes: ["vault:read"], vaultIds: null, ipAllowlist: [], expiresAt: null, label: "edited" })
    expect(await seen(secret)).toEqual(vaults)
  })

  test("an invalid edit exits with code 2 and a message, and changes nothing", async () => {
    const { key, secret } = await app.key("user_b")
    const refused = async (sentence: string, ...args: ReadonlyArray<string>) => {
      const { code, stderr } = await cli(["keys", "update", key.id, ...args], app.env)
      expect([args, code, stderr.includes(sentence)]).toEqual([args, 2, true])
    }
    await Promise.all([
      refused("not both", "--vaults", "vault_a", "--all-vaults"),
      refused("not both", "--ips", "10.0.0.0/8", "--no-ips"),
      refused("--ips is empty", "--ips", ""),
      refused("--ips is empty", "--ips", " , "),
      refused("--expires", "--expires", "tomorrow"),
      refused("no Developer role on vault_b", "--vaults", "vault_b", "--scopes", "webhook:read")
    ])
    for (const [change, sentence] of [
      [{ vaultIds: [] }, "at least one vault"],
      [{ scopes: ["vault:write"] }, "is not a scope"],
      [{ scopes: [] }, "at least one scope"],
      [{ ipAllowlist: ["203.0.113.0/33"] }, "CIDR"],
      [{ label: "x".repeat(201) }, "200 characters"],
      [{ label: "a\u0000b" }, "control characters"],
      [{ vaultIds: ["vault_a\u0000"] }, "no Developer role"],
      [{ vaultIds: Array.from({ length: 1_001 }, () => "vault_a") }, "at most 1000 vaults"],
      [{ ipAllowlist: Array.from({ length: 101 }, () => "127.0.0.1") }, "at most 100 ranges"]
    ] as const) {
      await expect(edit(key.id, change)).rejects.toThrow(sentence)
    }
    await expect(edit("key_nothing", { label: "x" })).rejects.toThrow("There is no key key_nothing")
    await expect(revoke("key_nothing")).rejects.toThrow("There is no key key_nothing")
    expect(await seen(secret)).toEqual(["vault_a"])
  })
})

describe("a key and its user's live roles", () => {
  test("losing the role on a vault withdraws it at once, and gaining it adds it", async () => {
    await app.feed([user("user_live", "org_a", ["vault_a", "vault_b"])])
    const all = await app.key("user_live")
    const listed = await app.key("user_live", { vaultIds: ["vault_a", "vault_b"] })
    expect(await seen(all.secret)).toEqual(["vault_a", "vault_b"])

    await app.feed([user("user_live", "org_a", ["vault_b", "vault_c"])])
    expect(await seen(all.secret)).toEqual(["vault_b", "vault_c"])
    expect(await seen(listed.secret)).toEqual(["vault_b"])
    for (const path of ["", "/balances", "/transactions", "/addresses"])
      expect(await ask(`/v1/vaults/vault_a${path}`, all.secret)).toBe("404 not_found")

    await app.feed([user("user_live", "org_a", [])])
    expect(await seen(all.secret)).toEqual([])
    expect(await ask("/v1/vaults/vault_b", all.secret)).toBe("404 not_found")
    expect(await ask("/v1/networks", all.secret)).toBe(200)
  })

  test("the organization role owner grants no vault without the Developer role", async () => {
    await app.feed([user("user_chair", "org_a", [], { organizationRole: "owner" })])
    expect(await seen((await app.key("user_chair")).secret)).toEqual([])
  })

  test("a deactivated user's keys are revoked, and stay revoked when the user is reactivated", async () => {
    await app.feed([user("user_leaver", "org_a", ["vault_a"])])
    const first = await app.key("user_leaver")
    const second = await app.key("user_leaver", { scopes: ["vault:read"] })
    expect(await ask("/v1/vaults", first.secret)).toBe(200)
    await app.feed([user("user_leaver", "org_a", ["vault_a"], { status: "deactivated" })])
    expect(await ask("/v1/vaults", first.secret)).toBe("401 revoked_api_key")
    expect(await ask("/v1/vaults", second.secret)).toBe("401 revoked_api_key")
    for (const one of await keys("list", "--user", "user_leaver"))
      expect(one).toMatchObject({ revokedReason: "user_deactivated", revokedAt: expect.any(String) })
    expect((await cli(["keys", "create", "--user", "user_leaver", "--scopes", "vault:read", "--all-vaults"], app.env)).stderr).toContain(
      "is deactivated"
    )
    await app.feed([user("user_leaver", "org_a", ["vault_a"])])
    expect(await ask("/v1/vaults", first.secret)).toBe("401 revoked_api_key")
    expect(await ask("/v1/vaults", (await app.key("user_leaver")).secret)).toBe(200)
  })
})

describe("deactivation and reactivation in one batch", () => {
  test("revoke the keys as in two batches", async () => {
    await app.feed([user("user_brief", "org_a", ["vault_a"])])
    const { secret } = await app.key("user_brief")
    expect(await ask("/v1/vaults", secret)).toBe(200)
    await app.feed([user("user_brief", "org_a", ["vault_a"], { status: "deactivated" }), user("user_brief", "org_a", ["vault_a"])])
    expect(await ask("/v1/vaults", secret)).toBe("401 revoked_api_key")
    expect(await ask("/v1/vaults", (await app.key("user_brief")).secret)).toBe(200)
  })
})

describe("a vault outside the intersection", () => {
  test("unless scope, role and allowlist agree, the response is that of a nonexistent vault", async () => {
    const { secret } = await app.key("user_a", { vaultIds: ["vault_a"] })
    const unscoped = (await app.key("user_a", { scopes: ["webhook:read"] })).secret
    const roleless = (await app.key("user_b")).secret
    expect(await ask("/v1/vaults/vault_a", secret)).toBe(200)
    const bodies = new Set<string>()
    for (const [key, id] of [
      [secret, "vault_b"],
      [secret, "vault_foreign"],
      [secret, "vault_nowhere"],
      [secret, "user_a"],
      [secret, "%00"],
      [unscoped, "vault_a"],
      [unscoped, "vault_nowhere"],
      [roleless, "vault_b"]
    ] as const) {
      for (const path of ["", "/balances", "/transactions", "/addresses"]) {
        const answer = await app.get(`/v1/vaults/${id}${path}`, key, { "x-request-id": "same-request-id" })
        expect([id, path, outcome(answer)]).toEqual([id, path, "404 not_found"])
        answer.headers.delete("date")
        bodies.add(`${JSON.stringify([...answer.headers].sort())}\n${answer.text}`)
      }
    }
    expect(bodies.size).toBe(1)
  })
})
