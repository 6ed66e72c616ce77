/** The list of keyboard shortcuts, which `?` opens on every page, and the switch that turns them off. */
import { Dialog } from "../parts/Dialog.tsx"
import { Toggle } from "../parts/Field.tsx"
import { useKeys } from "../shortcuts.ts"

interface ShortcutsDialogProps {
  /** The keys of each, as written on a keyboard, and what it does. */
  readonly all: ReadonlyArray<readonly [keys: ReadonlyArray<string>, does: string]>
  readonly onClose: () => void
}

export const ShortcutsDialog = ({ all, onClose }: ShortcutsDialogProps) => {
  const [keys, setKeys] = useKeys()
  return (
    <Dialog title="Keyboard shortcuts" open onClose={onClose}>
      <dl className="shortcuts">
        {all.map(([pressed, does]) => (
          <div key={does}>
            <dt>
              {pressed.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <Toggle label="Use keys without ⌘ or Ctrl" checked={keys === "on"} onChecked={(on) => setKeys(on ? "on" : "off")} />
    </Dialog>
  )
}
