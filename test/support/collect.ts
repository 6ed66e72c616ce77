/**
 * Separates live memory from garbage: SIGUSR2 collects garbage in every thread, and each prints what it still holds. Loaded
 * before the program (`bun --preload`), and by it before each of its threads.
 */
import { heapStats } from "bun:jsc"
import threads from "node:worker_threads"

const channel = new BroadcastChannel("collect")
channel.unref()
const collect = () => {
  Bun.gc(true)
  console.log(JSON.stringify({ collected: threads.threadId, heapMb: heapStats().heapSize / 2 ** 20 }))
}

if (threads.isMainThread) {
  process.on("SIGUSR2", () => {
    channel.postMessage("collect")
    collect()
  })
  Object.assign(threads, {
    Worker: class extends threads.Worker {
      constructor(file: string | URL, options?: threads.WorkerOptions) {
        super(file, Object.assign({}, options, { preload: [import.meta.path] }))
      }
    }
  })
} else channel.onmessage = collect
