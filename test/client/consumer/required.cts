/** What a consumer whose modules are CommonJS writes: the published vectors. Compiled and run by consumer.test.ts. */
import { readFileSync } from "node:fs"
import { SignatureError, verifySignature, verifyStatements } from "custody-data-client"

interface Vector {
  readonly name: string
  readonly secrets: ReadonlyArray<string>
  readonly now: number
  readonly tolerance: number
  readonly headers: Record<string, string>
  readonly body: string
  readonly valid: boolean
  readonly reason?: string
}
const { vectors }: { readonly vectors: ReadonlyArray<Vector> } = JSON.parse(
  readFileSync(require.resolve("custody-data-client/vectors.json"), "utf8")
)

const wrong = async () => {
  const found: Array<string> = []
  for (const { body, headers, name, now, reason, secrets, tolerance } of vectors) {
    const outcome = await verifySignature(body, headers, secrets, { now, tolerance }).then(
      () => undefined,
      (error: unknown) => (error instanceof SignatureError ? error.reason : String(error))
    )
    if (outcome !== reason) found.push(`${name}: ${outcome}`)
  }
  return found
}

wrong().then((found) => console.log(JSON.stringify({ vectors: vectors.length, wrong: found, more: typeof verifyStatements })))
