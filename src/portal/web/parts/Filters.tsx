/** Filters of a list, kept in the URL: a reload, a link and the back button show the same rows. */
import { X } from "lucide-react"
import type { ReactNode } from "react"
import { useSearchParams } from "react-router"
import { Button } from "./Button.tsx"

export interface FilterState<N extends string> {
  readonly values: Readonly<Record<N, string>>
  /** Whether any filter is set. */
  readonly any: boolean
  readonly set: (change: Partial<Readonly<Record<N, string>>>) => void
  readonly clear: () => void
}

/** The filters with these names; other parts of the URL stay unchanged. */
export const useFilters = <N extends string>(names: ReadonlyArray<N>): FilterState<N> => {
  const [search, setSearch] = useSearchParams()
  // Every name has a value: empty if absent.
  const values = Object.fromEntries(names.map((name) => [name, search.get(name) ?? ""])) as Readonly<Record<N, string>>
  const set = (change: Partial<Readonly<Record<string, string>>>) =>
    setSearch(
      (old) => {
        const next = new URLSearchParams(old)
        for (const [name, value = ""] of Object.entries(change)) value === "" ? next.delete(name) : next.set(name, value)
        return next
      },
      { replace: true, preventScrollReset: true }
    )
  return {
    values,
    any: names.some((name) => values[name] !== ""),
    set,
    clear: () => set(Object.fromEntries(names.map((name) => [name, ""])))
  }
}

export const Filters = <N extends string>({ children, filters }: { readonly filters: FilterState<N>; readonly children: ReactNode }) => (
  <div className="filters">
    {children}
    {filters.any ? (
      <Button kind="quiet" onClick={filters.clear}>
        Clear filters
      </Button>
    ) : null}
  </div>
)

/** A filter that was chosen from a row. */
export const FilterChip = ({
  label,
  onRemove,
  value
}: {
  readonly label: string
  readonly value: string
  readonly onRemove: () => void
}) => (
  <p className="chip">
    <span>
      {label}: <bdi>{value}</bdi>
    </span>
    <button type="button" aria-label={`Remove the filter ${label}: ${value}`} onClick={onRemove}>
      <X aria-hidden size={14} />
    </button>
  </p>
)

/** The value of the browser's date-time field, in the browser's zone, as the API expects it. */
export const utc = (local: string): string => (local === "" || Number.isNaN(Date.parse(local)) ? "" : new Date(local).toISOString())

/** The last millisecond of the field's minute, for a filter up to and including it. Stored times have no smaller unit. */
export const utcEnd = (local: string): string => {
  const start = utc(local)
  return start === "" ? "" : new Date(Math.floor(Date.parse(start) / 60_000) * 60_000 + 59_999).toISOString()
}
