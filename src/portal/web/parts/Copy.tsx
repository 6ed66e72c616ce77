/** Text with a copy button. */
import { Check, Copy as CopyIcon } from "lucide-react"
import { useState } from "react"
import { notify } from "./Notices.tsx"

const copy = async (text: string, what: string): Promise<boolean> => {
  try {
    await navigator.clipboard.writeText(text)
    notify(`${what} copied`)
    return true
  } catch {
    notify("The browser blocked copying. Select the text and copy it.")
    return false
  }
}

/** A button that copies a text; `what` names it. */
export const CopyButton = ({ label, text, what }: { readonly text: string; readonly what: string; readonly label?: string }) => {
  const [copied, setCopied] = useState(false)
  const Icon = copied ? Check : CopyIcon
  return (
    <button
      type="button"
      className={label === undefined ? "copy" : "button plain"}
      aria-label={label === undefined ? `Copy ${what.toLowerCase()}` : undefined}
      title={`Copy ${what.toLowerCase()}`}
      onClick={async () => {
        setCopied(await copy(text, what))
        setTimeout(() => setCopied(false), 2_000)
      }}
    >
      <Icon aria-hidden size={15} />
      {label}
    </button>
  )
}

/** An id, hash or address: in full if there is room, otherwise without its middle; always copied in full. */
export const Id = ({ text, what, whole = false }: { readonly text: string; readonly what: string; readonly whole?: boolean }) => (
  <span className="id">
    <code title={text}>{whole || text.length <= 24 ? text : `${text.slice(0, 12)}…${text.slice(-8)}`}</code>
    <CopyButton text={text} what={what} />
  </span>
)
