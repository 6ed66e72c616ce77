/** Dialogs: for small forms, and to confirm actions that cannot be undone. */
import { X } from "lucide-react"
import { AlertDialog as Alert, Dialog as Radix } from "radix-ui"
import { type ReactNode, useRef, useState } from "react"
import { Button } from "./Button.tsx"
import { Trouble } from "./States.tsx"

/** Returns the focus to the element that had it when the dialog opened. */
const useFocusBack = (open: boolean) => {
  const before = useRef<Element | null>(null)
  if (open && before.current === null) before.current = document.activeElement
  return (event: Event) => {
    event.preventDefault()
    if (before.current instanceof HTMLElement) before.current.focus()
    before.current = null
  }
}

export interface DialogProps {
  readonly title: string
  readonly lead?: ReactNode
  readonly wide?: boolean
  readonly open: boolean
  readonly onClose: () => void
  readonly children: ReactNode
}

export const Dialog = ({ children, lead, onClose, open, title, wide = false }: DialogProps) => {
  const focusBack = useFocusBack(open)
  return (
    <Radix.Root open={open} onOpenChange={(wanted) => (wanted ? undefined : onClose())}>
      <Radix.Portal>
        <Radix.Overlay className="veil" />
        <Radix.Content
          onCloseAutoFocus={focusBack}
          className={wide ? "dialog wide" : "dialog"}
          {...(lead === undefined ? { "aria-describedby": undefined } : {})}
        >
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
}

export interface QuestionProps {
  readonly title: string
  readonly text: ReactNode
  /** Label of the confirming button. */
  readonly yes: string
  readonly danger?: boolean
  readonly open: boolean
  readonly onClose: () => void
  readonly act: () => Promise<unknown>
}

/** A confirmation; it stays open if the action failed. */
export const Question = ({ act, danger = false, onClose, open, text, title, yes }: QuestionProps) => {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const focusBack = useFocusBack(open)
  const run = async () => {
    setBusy(true)
    setError(null)
    try {
      await act()
      onClose()
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Alert.Root open={open} onOpenChange={(wanted) => (wanted ? undefined : onClose())}>
      <Alert.Portal>
        <Alert.Overlay className="veil" />
        <Alert.Content className="dialog" onCloseAutoFocus={focusBack}>
          <Alert.Title>{title}</Alert.Title>
          <Alert.Description className="lead">{text}</Alert.Description>
          <Trouble error={error} />
          <div className="actions end">
            <Alert.Cancel asChild>
              <Button>Back</Button>
            </Alert.Cancel>
            <Button kind={danger ? "destroy" : "main"} busy={busy} onClick={run}>
              {yes}
            </Button>
          </div>
        </Alert.Content>
      </Alert.Portal>
    </Alert.Root>
  )
}

/** A button with a confirmation. */
export const Ask = ({
  kind = "plain",
  label,
  ...question
}: Omit<QuestionProps, "open" | "onClose"> & { readonly label: string; readonly kind?: "plain" | "danger" }) => {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button kind={kind} onClick={() => setOpen(true)}>
        {label}
      </Button>
      <Question {...question} open={open} onClose={() => setOpen(false)} />
    </>
  )
}
