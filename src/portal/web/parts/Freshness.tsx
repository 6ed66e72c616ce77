/** The notice of a page that cannot be refreshed. */
import { useQueryClient } from "@tanstack/react-query"
import { CloudOff } from "lucide-react"
import { type ReactNode, useSyncExternalStore } from "react"
import { mayHelp } from "../data.ts"
import { SESSION } from "../session.ts"
import { exactly, useZone } from "./Time.tsx"

/** When the page was last updated: the oldest response among queries whose last request failed; 0 if none did. */
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

/** Wraps a page: while it is stale, it shows a notice, and states lose their color. */
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
