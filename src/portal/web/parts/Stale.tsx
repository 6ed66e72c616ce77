/** What a page says while it cannot be brought up to date. */
import { useQueryClient } from "@tanstack/react-query"
import { CloudOff } from "lucide-react"
import { type ReactNode, useSyncExternalStore } from "react"
import { mayHelp } from "../data.ts"
import { SESSION } from "../session.ts"
import { exactly, useZone } from "./Time.tsx"

/** Since when what is shown was not updated: the oldest answer among the queries of the page whose last try failed; 0 when none did. */
const useStaleSince = (): number => {
  const cache = useQueryClient().getQueryCache()
  return useSyncExternalStore(
    (listener) => cache.subscribe(listener),
    () =>
      Math.min(
        ...cache
          .findAll({ type: "active" })
          .filter(
            ({ queryKey, state }) =>
              queryKey[0] !== SESSION[0] && state.dataUpdatedAt > 0 && state.fetchFailureCount > 0 && mayHelp(state.fetchFailureReason)
          )
          .map(({ state }) => state.dataUpdatedAt),
        Number.MAX_SAFE_INTEGER
      ) % Number.MAX_SAFE_INTEGER
  )
}

/** Wraps a page: while it is out of date it says so, and states lose their colour. */
export const Freshness = ({ children }: { readonly children: ReactNode }) => {
  const since = useStaleSince()
  const [zone] = useZone()
  return (
    <div className={since === 0 ? "fresh" : "stale"}>
      <div role="status">
        {since === 0 ? null : (
          <p className="outdated">
            <CloudOff aria-hidden size={16} />
            <span>
              <b>Not updated since {exactly(new Date(since), zone)}.</b> The service cannot be reached; this page keeps trying.
            </span>
          </p>
        )}
      </div>
      {children}
    </div>
  )
}
