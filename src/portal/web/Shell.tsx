/** What surrounds every page: where one can go, and who one is. A column on wide screens, a bar at the foot of narrow ones. */
import { Activity, CircleUser, KeyRound, Vault, Webhook } from "lucide-react"
import type { ReactNode } from "react"
import { NavLink } from "react-router"
import { useUser } from "./data.ts"
import { Brand } from "./parts/Brand.tsx"

const places = [
  ["/vaults", "Vaults", Vault],
  ["/events", "Events", Activity],
  ["/webhooks", "Webhooks", Webhook],
  ["/keys", "API keys", KeyRound],
  ["/account", "Account", CircleUser]
] as const

export const Shell = ({ children }: { readonly children: ReactNode }) => {
  const { name, organization } = useUser()
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="side">
        <Brand />
        <nav aria-label="Portal">
          <ul>
            {places.map(([to, label, Icon]) => (
              <li key={to}>
                <NavLink to={to}>
                  <Icon aria-hidden size={18} />
                  <span>{label}</span>
                </NavLink>
              </li>
            ))}
          </ul>
        </nav>
        <p className="who">
          <b>{organization.name}</b>
          <span>{name}</span>
        </p>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}
