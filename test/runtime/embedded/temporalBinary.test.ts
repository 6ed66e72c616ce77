import { expect, test } from "bun:test"
import { Effect, Either } from "effect"
import { verify } from "../../../src/runtime/embedded/TemporalBinary.ts"

test("a Temporal server download that does not match the release is refused", () => {
  for (const archive of ["linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "plan9_mips"]) {
    const outcome = Effect.runSync(Effect.either(verify(archive, new TextEncoder().encode("something else"))))
    expect([archive, Either.isLeft(outcome) && outcome.left.message.includes("was not installed")]).toEqual([archive, true])
  }
})
