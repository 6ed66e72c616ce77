/**
 * Custody records: the JSON objects that the custody platform sends. Records are decoded strictly: everything invalid is
 * reported by field and reason, and unknown fields are rejected. Source: custody records. Decisions D-15, D-16.
 */
import { Either, JSONSchema, ParseResult, Schema, type SchemaAST } from "effect"
import { detailOf, isTooDeep, strict } from "../../http/Body.ts"
import { AmountInput } from "../../values/Amount.ts"
import { AddressInput, AssetIdInput, HashInput, NetworkName, TokenType } from "../../values/ChainNames.ts"
import { given } from "../../values/Id.ts"
import { TimestampUtc } from "../../values/Timestamp.ts"
import { Direction, TransactionStatus } from "../../values/Vault.ts"
import { repeatedKeys } from "./repeatedKeys.ts"

const text = (maximum: number) =>
  Schema.String.pipe(
    Schema.filter(
      (value) =>
        (value.length > 0 && value.length <= maximum && !/\p{Cc}/u.test(value) && value.isWellFormed()) ||
        `must be a string of 1 to ${maximum} characters without control characters or lone surrogates`,
      { jsonSchema: { minLength: 1, maxLength: maximum, pattern: "^[^\\x00-\\x1f\\x7f-\\x9f]*$" } }
    )
  )

const whole = (maximum: number) =>
  Schema.Number.pipe(
    Schema.filter((value) => (Number.isInteger(value) && value >= 0 && value <= maximum) || `must be a whole number from 0 to ${maximum}`, {
      jsonSchema: { type: "integer", minimum: 0, maximum }
    })
  )

/** The number of a block as text. */
const digits = Schema.String.pipe(
  Schema.pattern(/^(?:0|[1-9]\d{0,38})$/, { message: () => "must be a string of up to 39 digits without leading zeros" })
)

const networks = Schema.Array(NetworkName).pipe(
  Schema.filter((names) => new Set(names).size === names.length || "must not name a network twice", { jsonSchema: { uniqueItems: true } })
)

/** When it happened on the platform; default: the time of recording. */
const occurredAt = { occurredAt: Schema.optional(TimestampUtc) }

const record = <Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields, ...occurredAt }).annotations({ identifier: type })

/** Every type of record with its fields. */
export const types = {
  network: record("network", { name: NetworkName, kind: Schema.Literal("mainnet", "testnet") }),
  asset: record("asset", { id: AssetIdInput, symbol: text(64), name: text(256), decimals: whole(78), network: NetworkName }),
  organization: record("organization", { id: given("org"), name: text(256), networks }),
  entity: record("entity", { id: given("entity"), organizationId: given("org"), name: text(256) }),
  vault: record("vault", { id: given("vault"), entityId: given("entity"), label: text(256), networks, createdAt: TimestampUtc }),
  user: record("user", {
    id: given("user"),
    organizationId: given("org"),
    email: text(320),
    name: text(256),
    status: Schema.Literal("active", "deactivated"),
    organizationRole: Schema.Literal("owner", "member"),
    vaultRoles: Schema.Array(Schema.Struct({ vaultId: given("vault"), role: Schema.Literal("developer") }))
  }),
  address: record("address", {
    vaultId: given("vault"),
    address: AddressInput,
    network: NetworkName,
    assetType: TokenType,
    createdAt: Schema.optional(TimestampUtc)
  }),
  transaction: record("transaction", {
    vaultId: given("vault"),
    hash: HashInput,
    network: NetworkName,
    index: Schema.optionalWith(whole(2_147_483_647), { default: () => 0 }),
    status: TransactionStatus,
    direction: Direction,
    asset: AssetIdInput,
    amount: AmountInput,
    from: AddressInput,
    to: AddressInput,
    timestamp: TimestampUtc,
    fee: Schema.optional(Schema.NullOr(Schema.Struct({ asset: AssetIdInput, amount: AmountInput }))),
    blockNumber: Schema.optional(Schema.NullOr(digits)),
    blockHash: Schema.optional(Schema.NullOr(text(256))),
    memo: Schema.optional(Schema.NullOr(text(256))),
    externalId: Schema.optional(Schema.NullOr(text(128)))
  }),
  balance: record("balance", { vaultId: given("vault"), asset: AssetIdInput, amount: AmountInput })
} as const

/**
 * The JSON Schema of a record: `$defs` has each type by its name, and a validator reports the errors of the record's own type only;
 * docs/feed.md has the meaning of the fields. It is what the decoders below check, with three exceptions. The
 * decoders count a text's length in UTF-16 units, in which a character outside the BMP is two; they reject lone surrogates; and a
 * time must be on a day that exists. What a record refers to and the digits of an asset only the ledger knows.
 */
export const jsonSchema = () => {
  const { $defs, $schema } = JSONSchema.make(Schema.Union(...Object.values(types)), { target: "jsonSchema2020-12" })
  const names = Object.keys(types)
  return {
    $schema,
    type: "object",
    required: ["type"],
    properties: { type: { enum: names } },
    allOf: names.map((name) => {
      const own = { required: ["type"], properties: { type: { const: name } } }
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      return { if: own, then: { $ref: `#/$defs/${name}` } }
    }),
    // Filters describe themselves in terms of the code.
    $defs: JSON.parse(JSON.stringify($defs, (key, value) => (/^(title|description)$/.test(key) ? undefined : value)))
  }
}

/** The name of a type of record. */
export type RecordType = keyof typeof types
/** A decoded record of a type. */
export type RecordOf<T extends RecordType> = Schema.Schema.Type<(typeof types)[T]>
/** Any decoded record. */
export type Record = { readonly [T in RecordType]: RecordOf<T> }[RecordType]

/** What is wrong with a record: its line (from 1), the field, and the reason. */
export interface Fault {
  readonly line: number
  readonly field: string
  readonly reason: string
}

const decoders: {
  readonly [T in RecordType]: (input: unknown, options: SchemaAST.ParseOptions) => Either.Either<Record, ParseResult.ParseError>
} = {
  network: Schema.decodeUnknownEither(types.network),
  asset: Schema.decodeUnknownEither(types.asset),
  organization: Schema.decodeUnknownEither(types.organization),
  entity: Schema.decodeUnknownEither(types.entity),
  vault: Schema.decodeUnknownEither(types.vault),
  user: Schema.decodeUnknownEither(types.user),
  address: Schema.decodeUnknownEither(types.address),
  transaction: Schema.decodeUnknownEither(types.transaction),
  balance: Schema.decodeUnknownEither(types.balance)
}

const isType = (value: unknown): value is RecordType => typeof value === "string" && Object.hasOwn(types, value)

/** Decodes one record; on failure, returns every invalid field, or only the first of a very large record. */
export const read = (input: unknown, line: number): Either.Either<Record, ReadonlyArray<Fault>> => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return Either.left([{ line, field: "", reason: "must be a JSON object" }])
  }
  const type: unknown = "type" in input ? input.type : undefined
  if (!isType(type)) {
    return Either.left([{ line, field: "type", reason: `must be one of ${Object.keys(types).join(", ")}` }])
  }
  if (isTooDeep(input)) return Either.left([{ line, field: "", reason: "is nested too deeply" }])
  return Either.mapLeft(decoders[type](input, strict(input)), (error) => faultsOf(error, line))
}

/** Decodes one record of a JSON text in which `repeated` is a key that stands twice in the record. */
export const readOnce = (input: unknown, line: number, repeated: string | undefined): Either.Either<Record, ReadonlyArray<Fault>> =>
  repeated === undefined ? read(input, line) : Either.left([{ line, field: repeated, reason: "is given twice" }])

/** Decodes one line of NDJSON. */
export const readLine = (source: string, line: number): Either.Either<Record, ReadonlyArray<Fault>> => {
  try {
    return readOnce(JSON.parse(source), line, repeatedKeys(source).get(0))
  } catch {
    return Either.left([{ line, field: "", reason: "is not JSON" }])
  }
}

const faultsOf = (error: ParseResult.ParseError, line: number): ReadonlyArray<Fault> => {
  const byField = Map.groupBy(ParseResult.ArrayFormatter.formatErrorSync(error), ({ path }) => path.map(String).join("."))
  // Of an object that may be null, a fault inside it says more than that it is not null.
  const fields = [...byField.keys()]
  return [...byField]
    .filter(([field]) => !fields.some((other) => other.startsWith(`${field}.`)))
    .map(([field, issues]) => ({ line, field, reason: detailOf(issues, "is not a field of this type") }))
}
