import { expect, test } from "bun:test"
import { masked } from "../../../src/runtime/telemetry/Log.ts"

test("the log hides whatever has the form of a secret, in base64 and base64url", () => {
  for (const secret of ["0123456789abcdefghij", "AbCd+/0123456789abcdef==", "AbCd-_0123456789-abc_def", "%2B0123456789abcdefg"]) {
    expect(masked(`read whsec_${secret} here`)).toBe("read whsec_*** here")
    expect(masked(`read cds_${secret} here`)).toBe("read cds_*** here")
  }
})
