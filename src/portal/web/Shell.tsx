/** The frame of every page: navigation, search, and the account. A column on wide screens, a bar at the bottom of narrow ones. */
import { BookOpen, CircleUser, Keyboard, Search, Users } from "lucide-react"
import { lazy, type ReactNode, Suspense, useState } from "react"
import { NavLink, useNavigate } from "react-router"
import { Brand } from "./parts/Brand.tsx"
import { Freshness } from "./parts/Freshness.tsx"
import { useZone } from "./parts/Time.tsx"
import { usePlaces } from "./places.ts"
import { useUser } from "./session.ts"
import { useShortcuts } from "./shortcuts.ts"
import { useTheme } from "./theme.ts"

const ShortcutsDialog = lazy(() => import("./pages/Shortcuts.tsx").then(({ ShortcutsDialog }) => ({ default: ShortcutsDialog })))
const SearchDialog = lazy(() => import("./pages/Search.tsx").then(({ SearchDialog }) => ({ default: SearchDialog })))

const isMac = /Mac|iP(hone|ad)/.test(navigator.userAgent)

export const Shell = ({ children }: { readonly children: ReactNode }) => {
  const { isOwner, name, organization } = useUser()
  const [opened, setOpened] = useState<"search" | "shortcuts" | null>(null)
  const [theme, setTheme] = useTheme()
  const [zone, setZone] = useZone()
  const navigate = useNavigate()
  const places = usePlaces()
  useShortcuts({
    open: (letter) => {
      const found = places.find((one) => one.letter === letter)
      if (found !== undefined) void navigate(found.to)
      return found !== undefined
    },
    search: () => setOpened("search"),
    help: () => setOpened("shortcuts")
  })
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="side">
        <Brand />
        <button type="button" className="search" onClick={() => setOpened("search")} aria-keyshortcuts={isMac ? "Meta+K" : "Control+K"}>
          <Search aria-hidden size={16} />
          <span>Search</span>
          <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <nav aria-label="Portal">
          <ul>
            {places.map(({ Icon, label, to }) =>
              Icon === undefined ? null : (
                <li key={to} className={to === "/members" ? "roomy" : undefined}>
                  <NavLink to={to}>
                    <Icon aria-hidden size={18} />
                    <span>{label}</span>
                  </NavLink>
                </li>
              )
            )}
          </ul>
        </nav>
        <div className="foot">
          <a className="docs" href="/v1/docs">
            <BookOpen aria-hidden size={18} />
            <span>Documentation</span>
          </a>
          <label className="zone">
            <span>Times in</span>
            <select value={zone} onChange={({ target }) => setZone(target.value)}>
              <option value="local">Local time</option>
              <option value="utc">UTC</option>
            </select>
          </label>
          <label className="zone">
            <span>Theme</span>
            <select value={theme} onChange={({ target }) => setTheme(target.value)}>
              <option value="system">System</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          </label>
          <button type="button" className="docs roomy" onClick={() => setOpened("shortcuts")}>
            <Keyboard aria-hidden size={18} />
            <span>Keyboard shortcuts</span>
          </button>
          {isOwner ? (
            <NavLink to="/members" className="docs narrow">
              <Users aria-hidden size={18} />
              <span>Members</span>
            </NavLink>
          ) : null}
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
      <Suspense>
        {opened === "search" ? <SearchDialog onClose={() => setOpened(null)} /> : null}
        {opened === "shortcuts" ? (
          <ShortcutsDialog
            all={[
              ...places.flatMap(({ label, letter }) => (letter === undefined ? [] : [[["g", letter], label] as const])),
              [["/"], "Search"],
              [["?"], "This list"]
            ]}
            onClose={() => setOpened(null)}
          />
        ) : null}
      </Suspense>
    </div>
  )
}
