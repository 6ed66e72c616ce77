/** Addresses that the record feed moves from a deactivated user to another one, who signs in with them. Decision D-43. */
import { expect, test } from "bun:test"
import { useApp } from "../support/app.ts"
import { smallest, user } from "../support/records.ts"
import { PASSWORD, signedIn, Visitor } from "./client.ts"

const app = useApp(["api"])

const person = (id: string, name: string, status = "active") => user(id, "org_a", ["vault_a"], { email: `${name}@example.com`, status })

/** The user whom an address signs in; the status of the refusal. */
const signsIn = async (name: string, domain = "example.com") => {
  const visitor = new Visitor(app)
  const { status } = await visitor.request("POST", "/api/sign-in", { email: `${name}@${domain}`, password: PASSWORD })
  return status === 200 ? (await visitor.get("/api/session")).json.user.id : status
}

test("a deactivated user's address signs in the active user who has it now", async () => {
  await app.feed([...smallest(), person("user_first", "jane"), person("user_second", "joan")])
  await signedIn(app, "user_first")
  await signedIn(app, "user_second")
  await app.feed([person("user_first", "jane", "deactivated"), person("user_second", "jane"), person("user_third", "joan")])
  // Nobody has signed in since, so the second account still has the address of the third user.
  await signedIn(app, "user_third")
  expect([await signsIn("jane"), await signsIn("joan")]).toEqual(["user_second", "user_third"])

  // An account without an address has something else in its place, which signs nobody in.
  await app.feed([person("user_second", "joan")])
  expect([await signsIn("jane"), await signsIn("joan")]).toEqual([401, "user_third"])
  const [{ email } = {}] = await app.sql("SELECT email FROM portal_users WHERE id = 'user_second'")
  expect(await signsIn(String(email).split("@")[0] ?? "", "invalid.example")).toBe(401)
  await app.feed([person("user_second", "jane")])
  expect([await signsIn("jane"), await signsIn("joan")]).toEqual(["user_second", "user_third"])

  // Somebody comes back as another user.
  await app.feed([person("user_second", "jane", "deactivated"), person("user_again", "jane")])
  await signedIn(app, "user_again")
  expect(await signsIn("jane")).toBe("user_again")

  // Or as the same one, who may not take the address of an active user.
  await app.feed([person("user_first", "jane")])
  expect(await signsIn("jane")).toBe("user_again")
  await app.feed([person("user_again", "jane", "deactivated")])
  expect(await signsIn("jane")).toBe("user_first")
})
