/** A menu of rare actions behind one button. */
import { MoreHorizontal } from "lucide-react"
import { type KeyboardEvent, useCallback, useEffect, useRef } from "react"

export interface MenuItem {
  readonly label: string
  readonly danger?: boolean
  readonly act: () => void
}

export const Menu = ({ items, label }: { readonly label: string; readonly items: ReadonlyArray<MenuItem> }) => {
  const place = useRef<HTMLDetailsElement>(null)
  const close = useCallback(() => place.current?.removeAttribute("open"), [])
  useEffect(() => {
    const pressed = ({ target }: PointerEvent) => {
      if (target instanceof Node && place.current?.contains(target) !== true) close()
    }
    addEventListener("pointerdown", pressed)
    return () => removeEventListener("pointerdown", pressed)
  }, [close])
  const left = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return
    close()
    place.current?.querySelector("summary")?.focus()
  }
  return (
    <details className="menu" ref={place} onKeyDown={left}>
      <summary className="button plain square" aria-label={label}>
        <MoreHorizontal aria-hidden size={18} />
      </summary>
      <div className="items">
        {items.map(({ act, danger, label }) => (
          <button
            key={label}
            type="button"
            className={danger === true ? "danger" : undefined}
            onClick={() => {
              // The focus returns to the menu's button, also when a dialog closes.
              place.current?.querySelector("summary")?.focus()
              close()
              act()
            }}
          >
            {label}
          </button>
        ))}
      </div>
    </details>
  )
}
