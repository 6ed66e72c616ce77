/** Verification of statements: in the browser, with the published keys and the client's own code. */
import { useQuery } from "@tanstack/react-query"
import type { Statement } from "../../../client/index.ts"
import { type StatementVerification, verifyStatement } from "../../../client/statements.ts"
import { get } from "../api.ts"
import { Status } from "./Status.tsx"

/** The published keys. */
export const readKeys = () => get("/v1/jwks.json")

/** The result of verifying a statement; undefined while it runs, or if this browser cannot verify. */
export const useVerification = (statement: Statement | undefined) =>
  useQuery({
    queryKey: ["verification", statement],
    queryFn: async (): Promise<StatementVerification | "impossible"> => {
      if (statement === undefined) return "impossible"
      const keys = await readKeys()
      // Browsers without Ed25519, and insecure pages, cannot tell.
      return verifyStatement(statement, keys).catch(() => "impossible" as const)
    },
    enabled: statement !== undefined,
    staleTime: Number.POSITIVE_INFINITY
  })

/** The result of a statement's verification, in a word. */
export const Verified = ({ statement }: { readonly statement: Statement }) => {
  const { data, error } = useVerification(statement)
  if (data === undefined) return <Status tone="wait">{error === null ? "Verifying" : "Not verified"}</Status>
  if (data === "impossible") return <Status tone="idle">This browser cannot verify</Status>
  return data.valid ? <Status tone="good">Verified</Status> : <Status tone="bad">Does not verify</Status>
}
