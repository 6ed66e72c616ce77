/**
 * Rows of statements, with the types that their schemas describe. A row that does not match its schema is a defect of the
 * program: the request fails, and the log names the column, never its value.
 */
import { Data, Effect, Either, ParseResult, Schema } from "effect"

/** A row that does not match the schema of its statement: the first column that differs, as a path such as `0.createdAt`. */
export class UnexpectedRow extends Data.TaggedError("UnexpectedRow")<{ readonly column: string }> {
  override get message() {
    return `A row does not match the schema of its statement: ${this.column}.`
  }
}

/** A column of bytes. */
export const Bytes = Schema.declare((value): value is Buffer => Buffer.isBuffer(value), { identifier: "Bytes" })

const unexpected = (error: ParseResult.ParseError) =>
  new UnexpectedRow({ column: ParseResult.ArrayFormatter.formatErrorSync(error)[0]?.path.join(".") ?? "" })

/** Decodes the rows of a statement: `decodeRows(Row)(statement)`. Columns that the schema does not name are left out. */
export const decodeRows = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknownEither(Schema.Array(schema))
  return <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>): Effect.Effect<ReadonlyArray<A>, E, R> =>
    Effect.flatMap(statement, (rows) =>
      Either.match(decode(rows), { onLeft: (error) => Effect.die(unexpected(error)), onRight: Effect.succeed })
    )
}

let decodesAll = false
/** From now on `castRows` decodes, too: in every service that a test starts. */
export const decodeAllRows = (): void => {
  decodesAll = true
}

/** Takes the rows of a frequent statement as they are, because decoding them would cost more than 5 % of its path. */
export const castRows = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = decodeRows(schema)
  return <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>): Effect.Effect<ReadonlyArray<A>, E, R> =>
    decodesAll ? decode(statement) : (statement as Effect.Effect<ReadonlyArray<A>, E, R>)
}
