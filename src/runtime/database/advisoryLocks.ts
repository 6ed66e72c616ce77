/**
 * Numbers of Postgres's advisory locks, which all processes of a database share. Each lasts until its transaction ends. A lock
 * of an organization or of a request has a hash as its number.
 */

/** Held by the process that applies migrations. Processes of other versions use the same numbers: none may change. */
export const MIGRATIONS = 7_249_011,
  /** Held by the process that creates the partitions of the next days. */
  PARTITIONS = 7_249_012
