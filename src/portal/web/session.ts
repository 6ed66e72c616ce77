/**
 * The session. When it expires, the page stays mounted but hidden: the user signs in again in front of it and continues,
 * and a change that was being saved is then sent. Another user gets a fresh page.
 */
import { focusManager, useQuery, useQueryClient } from "@tanstack/react-query"
import { createContext, useContext, useEffect, useRef } from "react"
import type { SessionStatus, User } from "../server/PortalApi.ts"
import { ApiProblem, get, onSessionEnd } from "./api.ts"

export const SESSION = ["session"]

/** The user whose pages this document has shown. */
let shown: string | undefined

const fetchStanding = async (): Promise<SessionStatus> => {
  const session = await get("/session")
  const { state, user } = session
  if (state !== "signed_in" || user === null) return session
  if (shown !== undefined && shown !== user.id) {
    // No user may see another user's pages.
    location.reload()
    return new Promise(() => {})
  }
  shown = user.id
  return session
}

export const useSession = () =>
  useQuery({ queryKey: SESSION, queryFn: fetchStanding, refetchInterval: 60_000, refetchIntervalInBackground: true })

/** Reloads the session after a sign-in. */
export const useSignedIn = () => {
  const client = useQueryClient()
  return () => client.invalidateQueries({ queryKey: SESSION })
}

const UserContext = createContext<User | null>(null)
export const UserProvider = UserContext.Provider

/** The signed-in user; always defined on pages inside the portal. */
export const useUser = (): User => {
  const user = useContext(UserContext)
  if (user === null) throw new Error("nobody is signed in")
  return user
}

/** The user whose pages to show, also after the session has expired; null before the first sign-in. */
export const useSignedInUser = (session: SessionStatus | undefined): { readonly user: User | null; readonly ended: boolean } => {
  const client = useQueryClient()
  const last = useRef<User | null>(null)
  const waiting = useRef<Array<{ readonly go: () => void; readonly stop: (reason: unknown) => void }>>([])
  const signedIn = session?.state === "signed_in"
  if (signedIn) last.current = session.user
  const ended = last.current !== null && session !== undefined && !signedIn
  useEffect(() => {
    onSessionEnd(
      last.current === null
        ? undefined
        : () =>
            new Promise<void>((go, stop) => {
              waiting.current.push({ go, stop })
              void client.invalidateQueries({ queryKey: SESSION })
            })
    )
  })
  useEffect(() => {
    // Hidden pages send no requests.
    focusManager.setFocused(ended ? false : undefined)
    if (!signedIn) return
    for (const { go } of waiting.current.splice(0)) go()
    void client.invalidateQueries({ predicate: ({ queryKey, state }) => queryKey[0] !== SESSION[0] && state.status === "error" })
  }, [client, ended, signedIn])
  useEffect(
    () => () => {
      for (const { stop } of waiting.current.splice(0)) stop(new ApiProblem(401, "signed_out", "Sign in to continue."))
    },
    []
  )
  return { user: last.current, ended }
}
