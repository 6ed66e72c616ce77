/** Dialogs: for something small to fill in, and for a question before something that cannot be undone. */
import { X } from "lucide-react"
import { AlertDialog as Alert, Dialog as Radix } from "radix-ui"
import { type ReactNode, useState } from "react"
import { Button } from "./Button.tsx"
import { Trouble } from "./States.tsx"

export interface DialogProps {
  readonly title: string
  readonly lead?: ReactNode
  readonly wide?: boolean
  readonly open: boolean
  readonly onClose: () => void
  readonly children: ReactNode
}

export const Dialog = ({ children, lead, onClose, open, title, wide = false }: DialogProps) => (
  <Radix.Root open={open} onOpenChange={(wanted) => (wanted ? undefined : onClose())}>
    <Radix.Portal>
      <Radix.Overlay className="veil" />
      <Radix.Content className={wide ? "dialog wide" : "dialog"} {...(lead === undefined ? { "aria-describedby": undefined } : {})}>
        <Radix.Title>{title}</Radix.Title>
        {lead === undefined ? null : <Radix.Description className="lead">{lead}</Radix.Description>}
        {children}
        <Radix.Close className="close" aria-label="Close">
          <X aria-hidden size={18} />
        </Radix.Close>
      </Radix.Content>
    </Radix.Portal>
  </Radix.Root>
)

export interface AskProps {
  /** The button that asks. */
  readonly trigger: ReactNode
  readonly title: string
  readonly text: ReactNode
  /** What the button that does it says. */
  readonly yes: string
  readonly danger?: boolean
  readonly act: () => Promise<unknown>
}

/** A button that asks before it acts, and stays open when it could not. */
export const Ask = ({ act, danger = false, text, title, trigger, yes }: AskProps) => {
  const [open, setOpen] = useState(false)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const run = async () => {
    setBusy(true)
    setError(null)
    try {
      await act()
      setOpen(false)
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Alert.Root open={open} onOpenChange={setOpen}>
      <Alert.Trigger asChild>{trigger}</Alert.Trigger>
      <Alert.Portal>
        <Alert.Overlay className="veil" />
        <Alert.Content className="dialog">
          <Alert.Title>{title}</Alert.Title>
          <Alert.Description className="lead">{text}</Alert.Description>
          <Trouble error={error} />
          <div className="actions end">
            <Alert.Cancel asChild>
              <Button>Not now</Button>
            </Alert.Cancel>
            <Button kind={danger ? "danger" : "main"} busy={busy} onClick={run}>
              {yes}
            </Button>
          </div>
        </Alert.Content>
      </Alert.Portal>
    </Alert.Root>
  )
}
