/** How commands end: a message for people and an exit code for scripts. */
import * as ValidationError from "@effect/cli/ValidationError"
import { Cause, Data, Effect, Exit } from "effect"
import type { InvalidKey, UnknownKey } from "../../access/keys/ApiKeys.ts"
import type { NotWritten } from "../../access/organizations/exportOrganization.ts"
import type { DeletedMeanwhile, UnknownOrganization } from "../../access/organizations/organizationTables.ts"
import type { InvalidRecords } from "../../custody/ledger/groupCommit.ts"
import type { ListenError } from "../../http/listener.ts"
import type { InvalidInvitation } from "../../portal/signIn/Invitations.ts"
import type { OutdatedDatabase } from "../../runtime/database/Migrations.ts"
import type { EmbeddedServerError } from "../../runtime/embedded/Process.ts"
import type { InvalidSettings } from "../../runtime/settings/Settings.ts"
import type { TemporalUnavailable } from "../../runtime/temporal/Connection.ts"
import type { DemoFailed } from "../demo/demoData.ts"
import type { NotPrinted } from "./run/print.ts"

/** What the exit codes mean. */
export const exitCodes = {
  0: "success, which for `start`, `demo` and `listen` includes an end by Ctrl-C or SIGTERM",
  1: "failed; `verify`: the data differ from what was signed",
  2: "wrong usage; `verify`: the check could not be completed",
  3: "a setting is missing or invalid",
  4: "input data is invalid",
  5: "a dependency is unavailable, or a port is in use",
  130: "interrupted by Ctrl-C before it was done, or by a second one",
  143: "the same by SIGTERM"
} as const

/** The command line is invalid or incomplete. */
export class Usage extends Data.TaggedError("Usage")<{ readonly message: string }> {}

/** Input could not be read or is invalid. */
export class InvalidInput extends Data.TaggedError("InvalidInput")<{ readonly message: string }> {}

/** The doctor found and printed faults; `code` is that of the most severe one. */
export class Unwell extends Data.TaggedError("Unwell")<{ readonly code: 1 | 3 | 5 }> {}

/** Not every stored secret is encrypted with the current key. */
export class NotReencrypted extends Data.TaggedError("NotReencrypted")<{ readonly message: string }> {}

/** Statements of some vaults could not be sealed. */
export class NotSealed extends Data.TaggedError("NotSealed")<{ readonly message: string }> {}

/** Events or statements differ from what was signed. */
export class NotComplete extends Data.TaggedError("NotComplete")<{ readonly message: string }> {}

/** The completeness of events or statements could not be checked. */
export class NotVerified extends Data.TaggedError("NotVerified")<{ readonly message: string }> {}

/** The events of a deployment cannot be followed: it rejects the request (1), or cannot be reached (5). */
export class NotFollowed extends Data.TaggedError("NotFollowed")<{ readonly code: 1 | 5; readonly message: string }> {}

/** Exit codes of failures with a message for people. */
const codes = {
  NotVerified: 2,
  Usage: 2,
  InvalidKey: 2,
  // The command line is valid, but the object that it names does not exist or is in the wrong state.
  UnknownKey: 1,
  UnknownOrganization: 1,
  DeletedMeanwhile: 1,
  InvalidInvitation: 1,
  DemoFailed: 1,
  NotReencrypted: 1,
  NotSealed: 1,
  NotComplete: 1,
  InvalidSettings: 3,
  InvalidRecords: 4,
  InvalidInput: 4,
  NotWritten: 1,
  NotPrinted: 1,
  EmbeddedServerError: 5,
  OutdatedDatabase: 5,
  TemporalUnavailable: 5,
  ListenError: 5
} as const satisfies Record<
  (
    | NotVerified
    | Usage
    | InvalidKey
    | UnknownKey
    | UnknownOrganization
    | DeletedMeanwhile
    | InvalidInvitation
    | DemoFailed
    | NotReencrypted
    | NotSealed
    | NotComplete
    | InvalidSettings
    | InvalidRecords
    | InvalidInput
    | NotWritten
    | NotPrinted
    | EmbeddedServerError
    | OutdatedDatabase
    | TemporalUnavailable
    | ListenError
  )["_tag"],
  keyof typeof exitCodes
>
const hasCode = (tag: string): tag is keyof typeof codes => tag in codes

/** A signal that ends the program. */
export type EndingSignal = "SIGINT" | "SIGTERM"

/** The exit code of a command that a signal ended before it was done. */
export const interrupted = (signal: EndingSignal) => (signal === "SIGINT" ? 130 : 143)

/** Whether the command runs until a signal ends it. */
let isEndless = false

/** A command that runs until a signal ends it, and then exits with code 0. */
export const untilInterrupted = <A, E, R>(command: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    isEndless = true
    return command
  })

/** The message of a failed command for standard error (empty if it was printed already), and its exit code. */
export const ending = async (
  exit: Exit.Exit<unknown, unknown>,
  signal: EndingSignal = "SIGINT"
): Promise<{ readonly code: number; readonly message: string }> => {
  if (Exit.isSuccess(exit)) return { code: 0, message: "" }
  if (Cause.isInterruptedOnly(exit.cause))
    return isEndless ? { code: 0, message: "" } : { code: interrupted(signal), message: "The command was interrupted before it was done." }
  const error = Cause.squash(exit.cause)
  // @effect/cli has already printed what is wrong with the command line.
  if (ValidationError.isValidationError(error)) return { code: 2, message: "" }
  if (error instanceof Unwell) return { code: error.code, message: "" }
  if (error instanceof NotFollowed) return { code: error.code, message: error.message }
  const tag = error instanceof Error && "_tag" in error ? String(error._tag) : ""
  if (error instanceof Error && hasCode(tag)) return { code: codes[tag], message: error.message }
  if (tag === "SqlError") return endingOfSql(error)
  return { code: 1, message: Cause.pretty(exit.cause) }
}

const endingOfSql = async (error: unknown) => {
  const { isUnavailable } = await import("../../runtime/database/unavailable.ts")
  return isUnavailable(error)
    ? { code: 5, message: `Postgres cannot be reached: ${reason(error)}. Check DATABASE_URL.` }
    : { code: 1, message: `Postgres rejected a statement: ${reason(error)}.` }
}

const reason = (error: unknown): string => {
  const cause = error instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message || ("code" in cause ? String(cause.code) : cause.name) : String(cause)
}
