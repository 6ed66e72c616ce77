/** Search over what the user can see: a dialog that ⌘K or Ctrl+K opens on every page, and a page of its own. */
import { useQuery } from "@tanstack/react-query"
import { Search as Icon } from "lucide-react"
import { type KeyboardEvent, useEffect, useRef, useState } from "react"
import { Link, useNavigate, useSearchParams } from "react-router"
import type { Found } from "../../server/Search.ts"
import { get } from "../api.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { TextField } from "../parts/Field.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { usePlaces } from "../places.ts"

/** A search result: of the service, or a page of the portal. */
type Shown = Omit<Found, "is"> & { readonly is: Found["is"] | "page" }

const kinds: Readonly<Record<Shown["is"], string>> = {
  page: "Page",
  vault: "Vault",
  webhook: "Webhook",
  event: "Event",
  delivery: "Delivery",
  transaction: "Transaction",
  address: "Deposit address",
  key: "API key"
}

const hint = "A transaction hash or id (tx_, evt_, del_, whs_, vault_), or how it begins; an address; a name; or a page."

/** The text after the user has stopped typing. */
const useSettled = (text: string): string => {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 150)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

const useFound = (text: string) => {
  const wanted = text.trim()
  const places = usePlaces().filter(({ label }) => label.toLowerCase().includes(wanted.toLowerCase()))
  return useQuery({
    queryKey: ["search", wanted],
    queryFn: ({ signal }) => get(`/search?q=${encodeURIComponent(wanted)}`, { signal }),
    enabled: wanted.length >= 2,
    select: ({ data, searched }) => ({
      searched,
      results: [...places.map(({ label, to }): Shown => ({ is: "page", label, note: "", at: null, to })), ...data]
    })
  })
}

const isId = (text: string) => /^[a-z]+_[0-9a-z]+$/.test(text)

const Result = ({ found: { at, is, label, note } }: { readonly found: Shown }) => (
  <>
    <span className="kind">{kinds[is]}</span>
    <span className="label">{label}</span>
    <span className="under">
      {isId(note) ? <code>{note}</code> : note} {at === null ? null : <Time at={at} />}
    </span>
  </>
)

export const SearchPage = () => {
  const [search, setSearch] = useSearchParams()
  const text = search.get("q") ?? ""
  const { data, error, refetch } = useFound(text)
  return (
    <Page title="Search">
      <TextField
        label="Search"
        type="search"
        hint={hint}
        value={text}
        onValue={(q) => setSearch(q === "" ? {} : { q }, { replace: true })}
      />
      {text.trim().length < 2 ? null : data === undefined ? (
        error === null ? (
          <Loading lines={2} />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : data.results.length === 0 ? (
        <Empty icon={Icon} title="Nothing found">
          <p>Searched {data.searched}, among what you can see. Events and deliveries are kept for 31 days.</p>
        </Empty>
      ) : (
        <>
          <p className="hint">Searched {data.searched}.</p>
          <ul className="rows results" aria-label="Results">
            {data.results.map((found) => (
              <li key={`${found.is} ${found.to} ${found.note}`}>
                <Link to={found.to}>
                  <Result found={found} />
                </Link>
              </li>
            ))}
          </ul>
        </>
      )}
    </Page>
  )
}

/** The search on every page, opened by keyboard or from the side column. */
export const SearchDialog = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog title="Search" open onClose={onClose} wide>
    <Finder close={onClose} />
  </Dialog>
)

const Finder = ({ close }: { readonly close: () => void }) => {
  const [text, setText] = useState("")
  const [at, setAt] = useState(0)
  const navigate = useNavigate()
  const { data, error, isFetching } = useFound(useSettled(text))
  const list = useRef<HTMLDivElement>(null)
  const results = data?.results ?? []
  const chosen = Math.min(at, results.length - 1)
  const go = (found: Shown | undefined) => {
    if (found === undefined) return
    close()
    void navigate(found.to)
  }
  const pressed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      const next = Math.max(0, Math.min(results.length - 1, chosen + step))
      setAt(next)
      list.current?.children[next]?.scrollIntoView({ block: "nearest" })
    }
    if (event.key === "Enter") {
      event.preventDefault()
      go(results[chosen])
    }
  }
  return (
    <div className="finder">
      <input
        type="search"
        role="combobox"
        aria-label="Search"
        aria-expanded={results.length > 0}
        aria-controls="found"
        aria-activedescendant={results.length > 0 ? `found-${chosen}` : undefined}
        placeholder={hint}
        // biome-ignore lint/a11y/noAutofocus: the field is the whole dialog
        autoFocus
        value={text}
        onChange={({ target }) => {
          setText(target.value)
          setAt(0)
        }}
        onKeyDown={pressed}
      />
      <div role="status" className="hint">
        {error !== null
          ? "Search failed. The service cannot be reached."
          : text.trim().length < 2
            ? hint
            : results.length > 0
              ? `${results.length} found. Searched ${data?.searched}.`
              : isFetching
                ? "Searching…"
                : `Nothing found. Searched ${data?.searched}.`}
      </div>
      <div role="listbox" id="found" aria-label="Results" ref={list} className="results">
        {results.map((found, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the focused field handles the keys
          <div
            key={`${found.is} ${found.to} ${found.note}`}
            id={`found-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => go(found)}
            onMouseMove={() => setAt(index)}
          >
            <Result found={found} />
          </div>
        ))}
      </div>
    </div>
  )
}
