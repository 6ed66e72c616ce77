import { expect, test } from "bun:test"
import { Effect, Either } from "effect"
import { verify } from "../../src/embedded/TemporalBinary.ts"

test("a download of the Temporal server that is not the release is refused, on every platform and on unknown ones", () => {
  for (const archive of ["linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "plan9_mips"]) {
    const outcome = Effect.runSync(Effect.either(verify(archive, new TextEncoder().encode("something else"))))
    expect([archive, Either.isLeft(outcome) && outcome.left.message.includes("was not installed")]).toEqual([archive, true])
  }
})
