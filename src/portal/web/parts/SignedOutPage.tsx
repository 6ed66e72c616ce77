/** A page for signing in: one step, centered. */
import type { ReactNode } from "react"
import { Brand } from "./Brand.tsx"
import { useTitle } from "./Page.tsx"

export const SignedOutPage = ({
  children,
  lead,
  title
}: {
  readonly title: string
  readonly lead?: ReactNode
  readonly children: ReactNode
}) => {
  useTitle(title)
  return (
    <main className="signed-out">
      <div className="card">
        <Brand />
        <h1>{title}</h1>
        {lead === undefined ? null : <p className="lead">{lead}</p>}
        {children}
      </div>
    </main>
  )
}
