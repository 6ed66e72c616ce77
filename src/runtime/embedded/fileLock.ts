/** Locks on files, of SQLite: the kernel releases those of a process that dies. Each is held until it is closed. */
import { Database } from "bun:sqlite"

const isBusy = (error: unknown): boolean => /busy|locked/i.test(String(error))

/** A lock on this file that nobody else holds then; undefined if somebody holds one. */
export const lockAlone = (file: string): Database | undefined => {
  const lock = new Database(file)
  try {
    lock.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE")
    return lock
  } catch (error) {
    lock.close()
    if (isBusy(error)) return undefined
    throw error
  }
}

/** A lock on this file that several may hold at once. */
export const lockTogether = (file: string): Database => {
  const lock = new Database(file)
  try {
    lock.exec("BEGIN; SELECT 1 FROM sqlite_schema")
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}

/** Whether somebody holds a lock on this file. */
export const isLocked = (file: string): boolean => {
  const lock = lockAlone(file)
  lock?.close()
  return lock === undefined
}
