/** How commands end: in words for people, and as an exit code for scripts. */
import { ValidationError } from "@effect/cli"
import { SqlError } from "@effect/sql"
import { Cause, Data, Exit } from "effect"
import { InvalidKey, UnknownKey } from "../credentials/ApiKeys.ts"
import { isUnavailable } from "../database/Database.ts"
import { DemoFailed } from "../demo/demoData.ts"
import { EmbeddedServerError } from "../embedded/Process.ts"
import { ListenError } from "../http/listener.ts"
import { InvalidRecords } from "../ledger/applyTogether.ts"
import { InvalidInvitation } from "../portal/Invitations.ts"
import { InvalidSettings } from "../settings/Settings.ts"

/** What the exit codes mean. */
export const exitCodes = {
  0: "success, or graceful shutdown by Ctrl-C or SIGTERM",
  1: "failed; `verify`: the events differ from what was signed",
  2: "wrong usage; `verify`: the check could not be made",
  3: "a setting is missing or invalid",
  4: "input data is invalid",
  5: "a dependency is unavailable, or a port is in use",
  130: "terminated by a second Ctrl-C without a graceful shutdown"
} as const

/** The command line does not say what is needed. */
export class Usage extends Data.TaggedError("Usage")<{ readonly message: string }> {}

/** Input could not be read or does not fit. */
export class InvalidInput extends Data.TaggedError("InvalidInput")<{ readonly message: string }> {}

/** The doctor found faults, and has told them; `code` is what the gravest of them stands for. */
export class Unwell extends Data.TaggedError("Unwell")<{ readonly code: 1 | 3 | 5 }> {}

/** Not everything that is sealed at rest is under the current key. */
export class NotReencrypted extends Data.TaggedError("NotReencrypted")<{ readonly message: string }> {}

/** The events of an entity are not what was signed. */
export class NotComplete extends Data.TaggedError("NotComplete")<{ readonly message: string }> {}

/** Whether the events of an entity are complete could not be checked. */
export class NotVerified extends Data.TaggedError("NotVerified")<{ readonly message: string }> {}

/** A command's end in words for standard error (empty when it said everything itself), and its exit code. */
export const ending = (exit: Exit.Exit<unknown, unknown>): { readonly code: number; readonly message: string } => {
  if (Exit.isSuccess(exit)) return { code: 0, message: "" }
  if (Cause.isInterruptedOnly(exit.cause)) return { code: 130, message: "" }
  const error = Cause.squash(exit.cause)
  // @effect/cli has printed what is wrong with the command line.
  if (ValidationError.isValidationError(error)) return { code: 2, message: "" }
  if (error instanceof NotVerified) return { code: 2, message: error.message }
  if (error instanceof Usage || error instanceof InvalidKey) return { code: 2, message: error.message }
  // The command was well said, and what it names is not there or not in that state.
  if (error instanceof UnknownKey || error instanceof InvalidInvitation) return { code: 1, message: error.message }
  if (error instanceof Unwell) return { code: error.code, message: "" }
  if (error instanceof DemoFailed || error instanceof NotReencrypted || error instanceof NotComplete)
    return { code: 1, message: error.message }
  if (error instanceof InvalidSettings) return { code: 3, message: error.message }
  if (error instanceof InvalidRecords || error instanceof InvalidInput) return { code: 4, message: error.message }
  if (error instanceof EmbeddedServerError || error instanceof ListenError) return { code: 5, message: error.message }
  if (isUnavailable(error)) return { code: 5, message: `Postgres cannot be reached: ${reason(error)}. Check DATABASE_URL.` }
  if (error instanceof SqlError.SqlError) return { code: 1, message: `Postgres refused: ${reason(error)}.` }
  return { code: 1, message: Cause.pretty(exit.cause) }
}

const reason = (error: unknown): string => {
  const cause = error instanceof SqlError.SqlError ? error.cause : error
  return cause instanceof Error ? cause.message || ("code" in cause ? String(cause.code) : cause.name) : String(cause)
}
