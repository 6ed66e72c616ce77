/** Short notices of completed actions, announced to screen readers and shown for a few seconds. */
import { useSyncExternalStore } from "react"
import { messageOf } from "../api.ts"

interface Notice {
  readonly id: number
  readonly text: string
}

let notices: ReadonlyArray<Notice> = []
let next = 1
const listeners = new Set<() => void>()
const set = (value: ReadonlyArray<Notice>) => {
  notices = value
  for (const listener of listeners) listener()
}

/** Shows a notice. */
export const notify = (text: string): void => {
  const id = next++
  set([...notices.slice(-2), { id, text }])
  setTimeout(() => set(notices.filter((one) => one.id !== id)), 4_000)
}

/** Runs a button's action; a failure is shown here too. */
export const attempt = (act: () => Promise<unknown>) => () => {
  act().catch((error: unknown) => notify(messageOf(error)))
}

export const Notices = () => {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => notices
  )
  return (
    <div className="notices" role="status" aria-live="polite">
      {shown.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  )
}
