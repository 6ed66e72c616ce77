/** The open tab of a page, kept in the URL. */
import { useSearchParams } from "react-router"

/** The open tab, the first if the URL names none. Filters belong to one tab and are dropped with it. */
export const useTab = (names: ReadonlyArray<string>): readonly [string, (name: string) => void] => {
  const [search, setSearch] = useSearchParams()
  const wanted = search.get("show") ?? ""
  return [
    names.includes(wanted) ? wanted : (names[0] ?? ""),
    (show) => setSearch(show === names[0] ? {} : { show }, { replace: true, preventScrollReset: true })
  ]
}
