/**
 * Readers of streams, in a separate process. `bun bench/support/feedReaders.ts <json>` with `{ url, keys, each }` opens
 * `each` streams with each key, prints `{ control }` when all of them have sent their position, and serves on that port
 * `[id, epoch milliseconds]` of every event that has arrived.
 */
interface Ask {
  readonly url: string
  readonly keys: ReadonlyArray<string>
  readonly each: number
}
const { each, keys, url }: Ask = JSON.parse(process.argv[2] ?? "{}")

const arrived: Array<readonly [string, number]> = []
const decoder = new TextDecoder()

const open = async (key: string) => {
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
  const reader = response.body?.getReader()
  if (response.status !== 200 || reader === undefined) throw new Error(`a stream was answered ${response.status}: ${await response.text()}`)
  let text = decoder.decode((await reader.read()).value, { stream: true })
  const read = async () => {
    for (;;) {
      const { done, value } = await reader.read()
      const at = performance.timeOrigin + performance.now()
      if (done) throw new Error("a stream ended")
      const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n")
      text = blocks.pop() ?? ""
      for (const block of blocks) {
        const [, id] = /^data: \{"id":"(evt_\w+)"/m.exec(block) ?? []
        if (id !== undefined) arrived.push([id, at])
      }
    }
  }
  read().catch((error) => {
    console.error(String(error))
    process.exit(1)
  })
}

for (const key of keys) await Promise.all(Array.from({ length: each }, () => open(key)))
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json(arrived) })
console.log(JSON.stringify({ control: server.port }))
