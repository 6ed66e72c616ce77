/** A client of the API that reads at a steady pace during a benchmark and measures how long each read takes. */

/** Pause between two reads, in ms. */
const PACE_MS = 20

/** Reads a target repeatedly. Call the returned function to stop it and to get the latencies in ms. Fails on any response but 200. */
export const reader = (port: number, key: string, target: string) => {
  const latencies: Array<number> = []
  let over = false
  const reading = (async () => {
    while (!over) {
      const startedAt = performance.now()
      const answer = await fetch(`http://127.0.0.1:${port}${target}`, { headers: { authorization: `Bearer ${key}` } })
      await answer.text()
      if (answer.status !== 200) throw new Error(`a read was answered ${answer.status}`)
      latencies.push(performance.now() - startedAt)
      await Bun.sleep(PACE_MS)
    }
  })()
  return async (): Promise<ReadonlyArray<number>> => {
    over = true
    await reading
    return latencies
  }
}
