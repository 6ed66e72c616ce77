/** The header of a page: breadcrumbs, title and actions. Sets the document's title. */
import { ChevronLeft } from "lucide-react"
import { type ReactNode, useEffect } from "react"
import { Link } from "react-router"
import { portalName } from "./Brand.tsx"

export interface PageProps {
  readonly title: string
  /** Replaces the title if it needs more than text. */
  readonly heading?: ReactNode
  readonly lead?: ReactNode
  readonly back?: readonly [to: string, label: string]
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export const useTitle = (title: string) =>
  useEffect(() => {
    document.title = `${title} · ${portalName} portal`
  }, [title])

export const Page = ({ actions, back, children, heading, lead, title }: PageProps) => {
  useTitle(title)
  return (
    <div className="page">
      {back === undefined ? null : (
        <Link className="back" to={back[0]}>
          <ChevronLeft aria-hidden size={16} />
          {back[1]}
        </Link>
      )}
      <div className="head">
        <div>
          <h1>{heading ?? title}</h1>
          {lead === undefined ? null : <p className="lead">{lead}</p>}
        </div>
        {actions === undefined ? null : <div className="actions">{actions}</div>}
      </div>
      {children}
    </div>
  )
}

/** A section of a page with a heading. */
export const Section = ({
  actions,
  children,
  lead,
  title
}: {
  readonly title: string
  readonly lead?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}) => (
  <section className="section">
    <div className="head">
      <div>
        <h2>{title}</h2>
        {lead === undefined ? null : <p className="lead">{lead}</p>}
      </div>
      {actions === undefined ? null : <div className="actions">{actions}</div>}
    </div>
    {children}
  </section>
)

/** Names with values. */
export const Facts = ({ rows }: { readonly rows: ReadonlyArray<readonly [name: string, value: ReactNode]> }) => (
  <dl className="facts">
    {rows.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)
