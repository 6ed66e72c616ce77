/** The file of an export as a stream of bytes, in memory that does not depend on its size. C-6. */
import { edenGC } from "bun:jsc"

/** A part of a file; its text may be empty. */
export interface Part {
  readonly text: string
  readonly isLast: boolean
}

/** How a file is made. */
interface FileSource {
  readonly next: () => Promise<Part>
  /** Releases the source of the parts. */
  readonly close: () => Promise<void>
  /** Seconds without progress after which a client is disconnected. */
  readonly stalledSeconds: number
  /** Longest time that the file may take, in ms; default: half an hour. */
  readonly longest?: number
}

/** Until an export ends, Postgres keeps every row that was replaced meanwhile. In ms. */
const LONGEST = 1_800_000
/** Extra seconds for a client that never started to read, which the listener does not see. */
const BEYOND_STALLED = 10
/**
 * Characters after which the garbage of the parts is collected. The runtime alone would wait until memory has doubled.
 * Objects in use during a collection stay until a full one, which is rare: so it runs not too often, and between two parts.
 */
const COLLECT_EVERY = 2_000_000

/** The file as bytes: a part each time the connection accepts more. Breaks off after `longest`. */
export const fileOf = ({ close, longest = LONGEST, next, stalledSeconds }: FileSource) => {
  const encoder = new TextEncoder()
  const startedAt = performance.now()
  let watch: Timer | undefined
  let uncollected = 0
  const end = () => {
    clearTimeout(watch)
    return close()
  }
  /** The next part with a text: the stream asks again only after it got some. */
  const nextText = async (): Promise<Part> => {
    for (;;) {
      if (performance.now() - startedAt > longest) throw new Error("the export took too long")
      const part = await next()
      if (part.text !== "" || part.isLast) return part
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(watch)
        try {
          const { isLast, text } = await nextText()
          if (text !== "") controller.enqueue(encoder.encode(text))
          if (isLast) {
            // The slot is free before the client knows that the file is complete, so its next export is not rejected.
            await end()
            controller.close()
            return
          }
          uncollected += text.length
          if (uncollected > COLLECT_EVERY) {
            uncollected = 0
            // By then this part is sent, and Postgres is preparing the next one.
            setImmediate(edenGC)
          }
          watch = setTimeout(() => void close(), (stalledSeconds + BEYOND_STALLED) * 1_000)
        } catch (error) {
          controller.error(error)
          await end()
        }
      },
      cancel: end
    },
    { highWaterMark: 0 }
  )
}
