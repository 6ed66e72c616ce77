/** Every rule has a test; `bun run documents` writes the table. */
import { describe, expect, test } from "bun:test"
import { invalidTitles, stale, untested } from "../../tools/conformance/conformance.ts"

describe("conformance", () => {
  test("every rule and every decision has a test in tools/conformance/tests.json", () => {
    expect(untested()).toEqual([])
  })

  test("tools/conformance/tests.json names only existing tests and rules", () => {
    expect(stale()).toEqual([])
  })

  test("titles of tests have at most fifteen words and no number of a rule", () => {
    expect(invalidTitles()).toEqual([])
  })
})
