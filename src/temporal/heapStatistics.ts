import v8 from "node:v8"

/**
 * Reads the heap's statistics once. The SDK reads them for each worker, to derive a default that is not used, and on Bun each read
 * walks the whole heap: 25 ms and more, in which the process does nothing else.
 */
export const readHeapStatisticsOnce = (): void => {
  const statistics = v8.getHeapStatistics()
  v8.getHeapStatistics = () => statistics
}
