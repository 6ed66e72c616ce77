/**
 * Numbers of Postgres's advisory locks, which all processes of a database share. Each lasts until its transaction ends. A lock
 * of an organization or of a request has a hash as its number.
 */

/** Held by the process that applies migrations. Earlier versions use the same numbers: none may change. */
export const MIGRATIONS = 7_249_011,
  /** Held by the process that creates the partitions of the next days. */
  PARTITIONS = 7_249_012,
  /** Held by the process that chains the events of an earlier version. */
  EVENT_CHAINS = 7_249_016,
  /** Held by the process that copies a part of the transactions. */
  TRANSACTIONS_MOVE = 7_249_018,
  /** Shared by those who delete transactions while rows are moved, and held alone while a part is moved. */
  TRANSACTION_DELETERS = 7_249_019,
  /** Serializes processes that register with one that becomes the only one. */
  PRESENCE = 7_249_032
