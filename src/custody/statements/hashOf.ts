/** The hash of a statement. C-6. */
import { createHash } from "node:crypto"
import canonicalize from "canonicalize"
import type { Statement } from "../../values/Statement.ts"

/** The hashed part of a statement. */
export type Sealed = Omit<Statement, "hash" | "jws">

/** SHA-256 (hex) of a statement as RFC 8785 JSON. */
export const hashOf = (statement: Sealed): string =>
  createHash("sha256")
    .update(canonicalize(statement) ?? "")
    .digest("hex")
