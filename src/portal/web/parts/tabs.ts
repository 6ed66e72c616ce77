/** Which tab of a page is open, kept in the address. */
import { useSearchParams } from "react-router"

/** The open tab of these, the first where the address names none of them. Filters belong to one tab and go with it. */
export const useTab = (names: ReadonlyArray<string>): readonly [string, (name: string) => void] => {
  const [search, setSearch] = useSearchParams()
  const wanted = search.get("show") ?? ""
  return [
    names.includes(wanted) ? wanted : (names[0] ?? ""),
    (show) => setSearch(show === names[0] ? {} : { show }, { replace: true, preventScrollReset: true })
  ]
}
