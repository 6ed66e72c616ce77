/** A secret, shown only once. */
import { TriangleAlert } from "lucide-react"
import type { ReactNode } from "react"
import { CopyButton } from "./Copy.tsx"

export const Secret = ({
  children,
  secret,
  title,
  what
}: {
  readonly title: string
  readonly what: string
  readonly secret: string
  readonly children?: ReactNode
}) => (
  <div className="secret">
    <h2>{title}</h2>
    <p className="warn">
      <TriangleAlert aria-hidden size={16} />
      <span>Store it now. It cannot be shown again.</span>
    </p>
    <div className="text">
      <code data-secret>{secret}</code>
      <CopyButton text={secret} what={what} label="Copy" />
    </div>
    {children}
  </div>
)
