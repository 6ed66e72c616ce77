/** Buttons, and links that look like them. */
import type { ButtonHTMLAttributes, ReactNode } from "react"
import { Link } from "react-router"

type Kind = "plain" | "main" | "danger" | "destroy" | "quiet"

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: Kind
  /** In progress: it cannot be pressed again, and screen readers announce it as busy. */
  readonly busy?: boolean
}

export const Button = ({ busy = false, children, className = "", disabled, kind = "plain", type = "button", ...rest }: ButtonProps) => (
  <button {...rest} type={type} className={`button ${kind} ${className}`} disabled={disabled === true || busy} aria-busy={busy}>
    {children}
  </button>
)

export const LinkButton = ({
  children,
  kind = "plain",
  to
}: {
  readonly to: string
  readonly kind?: Kind
  readonly children: ReactNode
}) => (
  <Link className={`button ${kind}`} to={to}>
    {children}
  </Link>
)
