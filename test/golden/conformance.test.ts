/** Every rule has a test; `bun run documents` writes the table. */
import { describe, expect, test } from "bun:test"
import { stale, untested } from "../../tools/conformance/conformance.ts"

describe("conformance", () => {
  test("every rule and every decision has a test that names it, in its title or in tools/conformance/tests.json", () => {
    expect(untested()).toEqual([])
  })

  test("tools/conformance/tests.json names only existing tests and rules, and none that a title names", () => {
    expect(stale()).toEqual([])
  })
})
