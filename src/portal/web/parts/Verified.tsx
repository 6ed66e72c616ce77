/** Whether statements are what the service sealed: verified in the browser, with the published keys, by the client's own code. */
import { useQuery } from "@tanstack/react-query"
import { type StatementVerification, verifyStatement } from "../../../client/statements.ts"
import type { SigningKeySet } from "../../../client/webhooks.ts"
import type { Statement } from "../../../statements/Statement.ts"
import { get } from "../api.ts"
import { Status } from "./Status.tsx"

/** The published keys. */
export const readKeys = () => get<SigningKeySet>("/v1/jwks.json")

/** What the verification of a statement found; undefined while it runs, or where this browser cannot verify. */
export const useVerification = (statement: Statement | undefined) =>
  useQuery({
    queryKey: ["verification", statement],
    queryFn: async (): Promise<StatementVerification | "impossible"> => {
      if (statement === undefined) return "impossible"
      const keys = await readKeys()
      // A browser without Ed25519, or a page that is not served securely, cannot tell.
      return verifyStatement(statement, keys).catch(() => "impossible" as const)
    },
    enabled: statement !== undefined,
    staleTime: Number.POSITIVE_INFINITY
  })

/** The state of a statement's verification, in a word. */
export const Verified = ({ statement }: { readonly statement: Statement }) => {
  const { data, error } = useVerification(statement)
  if (data === undefined) return <Status tone="wait">{error === null ? "Verifying" : "Not verified"}</Status>
  if (data === "impossible") return <Status tone="idle">This browser cannot verify</Status>
  return data.valid ? <Status tone="good">Verified</Status> : <Status tone="bad">Does not verify</Status>
}
