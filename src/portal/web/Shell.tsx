/** The frame of every page: navigation, search, and the account. A column on wide screens, a bar at the bottom of narrow ones. */
import { Activity, BookOpen, CircleUser, House, KeyRound, ScrollText, Search, Users, Vault, Webhook } from "lucide-react"
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react"
import { NavLink } from "react-router"
import { Brand } from "./parts/Brand.tsx"
import { Freshness } from "./parts/Freshness.tsx"
import { useZone } from "./parts/Time.tsx"
import { useUser } from "./session.ts"

const SearchDialog = lazy(() => import("./pages/Search.tsx").then(({ SearchDialog }) => ({ default: SearchDialog })))

const places = [
  ["/home", "Home", House],
  ["/vaults", "Vaults", Vault],
  ["/events", "Events", Activity],
  ["/webhooks", "Webhooks", Webhook],
  ["/keys", "API keys", KeyRound],
  ["/members", "Members", Users],
  ["/audit-log", "Audit log", ScrollText]
] as const
const ofOwners = ["/members", "/audit-log"]

const isMac = /Mac|iP(hone|ad)/.test(navigator.userAgent)

export const Shell = ({ children }: { readonly children: ReactNode }) => {
  const { isOwner, name, organization } = useUser()
  const [searching, setSearching] = useState(false)
  const [zone, setZone] = useZone()
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey)) return
      event.preventDefault()
      setSearching(true)
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [])
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="side">
        <Brand />
        <button type="button" className="search" onClick={() => setSearching(true)} aria-keyshortcuts={isMac ? "Meta+K" : "Control+K"}>
          <Search aria-hidden size={16} />
          <span>Search</span>
          <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <nav aria-label="Portal">
          <ul>
            {places
              .filter(([to]) => isOwner || !ofOwners.includes(to))
              .map(([to, label, Icon]) => (
                <li key={to} className={to === "/members" ? "roomy" : undefined}>
                  <NavLink to={to}>
                    <Icon aria-hidden size={18} />
                    <span>{label}</span>
                  </NavLink>
                </li>
              ))}
          </ul>
        </nav>
        <div className="foot">
          <a className="docs" href="/v1/docs">
            <BookOpen aria-hidden size={18} />
            <span>Documentation</span>
          </a>
          <label className="zone">
            <span>Times in</span>
            <select value={zone} onChange={({ target }) => setZone(target.value === "utc" ? "utc" : "local")}>
              <option value="local">Local time</option>
              <option value="utc">UTC</option>
            </select>
          </label>
          <NavLink to="/account" className="who">
            <CircleUser aria-hidden size={20} />
            <span>
              <b>{name}</b>
              <small>{organization.name}</small>
            </span>
          </NavLink>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <Freshness>{children}</Freshness>
      </main>
      {searching ? (
        <Suspense>
          <SearchDialog onClose={() => setSearching(false)} />
        </Suspense>
      ) : null}
    </div>
  )
}
