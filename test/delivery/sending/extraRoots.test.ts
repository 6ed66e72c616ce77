/** The file of roots that deliveries trust in addition, WEBHOOK_EXTRA_CA, as it is read at the start. */
import { afterAll, expect, test } from "bun:test"
import { Effect } from "effect"
import { clientIdentity } from "../../../src/delivery/sending/request/ClientIdentity.ts"
import { temporaryFiles } from "../../support/files.ts"
import { authority } from "../../support/receiver.ts"

const files = temporaryFiles()
afterAll(() => files.remove())
const roots = await Promise.all([authority(), authority()])
const [first, second] = roots.map(({ ca }) => `${ca.trim()}\n`) as [string, string]
const { key } = await roots[0].sign({ names: ["localhost"] })
const broken = first.replaceAll(/^(?!-).*$/gm, "AAAA")

/** What is wrong with a file; empty if it is accepted. */
const faultOf = (text: string): Promise<string> =>
  clientIdentity({
    webhookExtraCa: files.write("roots.pem", text),
    webhookClientCertFile: undefined,
    webhookClientKeyFile: undefined
  }).pipe(
    Effect.as(""),
    Effect.catchAll(({ faults }) => Effect.succeed(faults.join())),
    Effect.scoped,
    Effect.runPromise
  )

test("extra roots are accepted with text around them, any line ends and other objects", async () => {
  for (const text of [first, `${first}${second}`, `# A\n${first}# B\n${second}# End`, `${key}${first}`])
    for (const ends of ["\n", "\r\n"]) expect(await faultOf(text.replaceAll("\n", ends))).toBe("")
})

test("a file of extra roots without any, or with an unreadable one, prevents the start", async () => {
  for (const text of ["", "garbage", key]) expect(await faultOf(text)).toMatch(/^WEBHOOK_EXTRA_CA: .*it contains no certificate/)
  for (const [text, which] of [
    [`${broken}${first}`, "1 of 2"],
    [`${first}${second.slice(0, second.length / 2)}`, "2 of 2"],
    [`${first}${broken}${second}`, "2 of 3"]
  ] as const)
    expect(await faultOf(text)).toMatch(new RegExp(`^WEBHOOK_EXTRA_CA: .*certificate ${which} cannot be read`))
})
