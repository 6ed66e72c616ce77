/** Keyboard shortcuts: `g` and a letter opens a page, `/` or ⌘K the search, `?` the list of shortcuts. */
import { useEffect, useRef } from "react"
import { preference } from "./preference.ts"

/** Keys without ⌘ or Ctrl can be turned off: speech input types them, too. */
const keys = preference("custody.keys", ["on", "off"])
export const useKeys = keys.use

/** How long `g` waits for its letter, in ms. */
const WAIT_MS = 1_500

/** Whether the keys belong to a field or an open dialog. */
const isTaken = (target: EventTarget | null) =>
  (target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select") !== null)) ||
  document.querySelector('[role="dialog"], [role="alertdialog"]') !== null

export interface Shortcuts {
  /** Opens the page of a letter; false if there is none. */
  readonly open: (letter: string) => boolean
  readonly search: () => void
  readonly help: () => void
}

/** Listens to the keys while the page is shown. */
export const useShortcuts = (shortcuts: Shortcuts) => {
  const latest = useRef(shortcuts)
  latest.current = shortcuts
  useEffect(() => {
    let waitingSince = Number.NEGATIVE_INFINITY
    const pressed = (event: KeyboardEvent) => {
      const { altKey, ctrlKey, key, metaKey, target, timeStamp } = event
      const { help, open, search } = latest.current
      if ((metaKey || ctrlKey) && key.toLowerCase() === "k") {
        event.preventDefault()
        return search()
      }
      if (keys.current() === "off" || altKey || ctrlKey || metaKey || event.isComposing || isTaken(target)) return
      const isSecond = timeStamp - waitingSince < WAIT_MS
      waitingSince = key === "g" && !isSecond ? timeStamp : Number.NEGATIVE_INFINITY
      if (isSecond ? open(key) : key === "/" || key === "?") event.preventDefault()
      if (isSecond) return
      if (key === "/") search()
      if (key === "?") help()
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [])
}
