/**
 * A client that reads a file as fast as it arrives, in a separate process. `bun bench/support/exportClient.ts <json>` with
 * `{ port, path, key }` prints `{ lines, bytes, seconds, firstByteMs }`; fails if the response is not 200.
 */
const { key, path, port }: { readonly port: number; readonly path: string; readonly key: string } = JSON.parse(process.argv[2] ?? "{}")

const startedAt = performance.now()
const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } })
if (answer.status !== 200 || answer.body === null) throw new Error(`the export was answered ${answer.status}: ${await answer.text()}`)
let lines = 0,
  bytes = 0,
  firstByteMs = 0
for await (const chunk of answer.body) {
  if (firstByteMs === 0) firstByteMs = Math.round(performance.now() - startedAt)
  bytes += chunk.length
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
}
console.log(JSON.stringify({ lines, bytes, seconds: (performance.now() - startedAt) / 1_000, firstByteMs }))
