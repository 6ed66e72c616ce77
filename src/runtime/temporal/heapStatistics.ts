import v8 from "node:v8"

/**
 * Reads the heap's statistics at most once. The SDK reads them for each worker, to derive a default that is not used, and on Bun
 * each read walks the whole heap: 25 ms and more, in which the process does nothing else. The limit, which the SDK also compares
 * with a container's memory, does not change.
 */
export const readHeapStatisticsOnce = (): void => {
  const read = v8.getHeapStatistics
  let statistics: v8.HeapInfo | undefined
  v8.getHeapStatistics = () => {
    statistics ??= read()
    return statistics
  }
}
