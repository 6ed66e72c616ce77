/** The request limit of a browser in the portal: the same as for an API key, on every path. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../support/api.ts"
import { smallest, user } from "../support/records.ts"
import { short } from "../support/webhookFixtures.ts"
import { PASSWORD, signedIn, Visitor } from "./client.ts"

const app = useApi({ RATE_LIMIT: "2/1s burst 20" })
let one: Visitor, other: Visitor

beforeAll(async () => {
  await app.feed([...smallest(), user("user_b", "org_a", ["vault_a"])])
  one = await signedIn(app, "user_a")
  other = await signedIn(app, "user_b")
})

test("a session's requests count against its user's rate limit and no other's", async () => {
  const paths = ["/api/search?q=vault", "/api/context", "/api/keys", "/api/sessions", "/api/v1/vaults", "/api/session"]
  const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => one.get(paths[index % paths.length] ?? "")))
  const refused = answers.filter(({ status }) => status === 429)
  expect(new Set(answers.map(short))).toEqual(new Set(["200", "429 rate_limited"]))
  expect(refused.length).toBeGreaterThanOrEqual(20)
  for (const { headers } of refused) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0)
  expect((await other.get("/api/search?q=vault")).status).toBe(200)
})

test("requests with the password alone do not count against the user's rate limit", async () => {
  const half = new Visitor(app)
  await half.request("POST", "/api/sign-in", { email: "user_b@example.com", password: PASSWORD })
  expect(await half.state()).toBe("second_factor")
  const answers = await Promise.all(Array.from({ length: 40 }, () => half.get("/api/session")))
  expect(answers.some(({ status }) => status === 429)).toBe(true)
  expect((await other.get("/api/search?q=vault")).status).toBe(200)
})
