/** docs/conformance.md is generated from the titles of the tests and is complete. */
import { describe, expect, test } from "bun:test"
import { conformance, stale, untested } from "../../tools/conformance/conformance.ts"
import { documentWhole } from "../support/document.ts"

describe("docs/conformance.md", () => {
  test("every rule and every decision has a test that names it, in its title or in tools/conformance/tests.json", () => {
    expect(untested()).toEqual([])
  })

  test("tools/conformance/tests.json names only existing tests and rules, and none that a title names", () => {
    expect(stale()).toEqual([])
  })

  test("is generated from the tests", () => {
    documentWhole("docs/conformance.md", conformance())
  })
})
