/** States of a page without content: loading, empty, failed. */
import { CircleAlert, type LucideIcon } from "lucide-react"
import type { ReactNode } from "react"
import { ApiProblem, messageOf } from "../api.ts"
import { mayHelp } from "../data.ts"
import { Button } from "./Button.tsx"

/** Gray lines while content loads. */
export const Loading = ({ lines = 4 }: { readonly lines?: number }) => (
  <div className="loading" role="status">
    <span className="unseen">Loading…</span>
    {Array.from({ length: lines }, (_, line) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the lines are identical
      <span key={line} className="bone" aria-hidden />
    ))}
  </div>
)

/** Empty, and what to do about it. */
export const Empty = ({
  children,
  icon: Icon,
  title
}: {
  readonly icon: LucideIcon
  readonly title: string
  readonly children?: ReactNode
}) => (
  <div className="empty">
    <Icon aria-hidden size={28} strokeWidth={1.5} />
    <h2>{title}</h2>
    {children}
  </div>
)

/** Failed, why, and a retry if one may help. */
export const Failure = ({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) => (
  <div className="empty" role="alert">
    <CircleAlert aria-hidden size={28} strokeWidth={1.5} />
    <h2>{error instanceof ApiProblem && error.status === 404 ? "Not found" : "This could not be loaded"}</h2>
    <p>{messageOf(error)}</p>
    {retry === undefined || !mayHelp(error) ? null : <Button onClick={retry}>Try again</Button>}
  </div>
)

/** An error beside what it is about. */
export const Trouble = ({ error }: { readonly error: unknown }) =>
  error == null ? null : (
    <p className="trouble" role="alert">
      <CircleAlert aria-hidden size={16} />
      <span>{messageOf(error)}</span>
    </p>
  )
