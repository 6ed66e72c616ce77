/**
 * Event kinds: the typed registry of kinds, with their data and version. Validation, the OpenAPI document's `webhooks`,
 * the JSON Schema golden files and the documentation's table are derived from it. Spec: Event kinds. Decisions D-17,
 * D-18.
 */
import { Schema } from "effect"
import { Because, SealedStatement } from "../../values/Statement.ts"
import { Balance, DepositAddress, PreviousTransaction, Transaction, Vault } from "../../values/Vault.ts"

const vaultId = Schema.String.annotations({
  description: "The vault in which it occurred",
  examples: ["vault_dkjh7m6gvxzc2wjrphqz46b3br"]
})
const transaction = Schema.Struct({
  vaultId,
  transaction: Transaction,
  previous: Schema.NullOr(PreviousTransaction).annotations({
    description:
      "The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same"
  })
})
const statement = Schema.Struct({
  vaultId,
  statement: SealedStatement,
  because: Schema.NullOr(Because).annotations({ description: "What late records caused a revision; null for the first" })
})
const webhookId = Schema.String.annotations({ description: "The webhook that it concerns", examples: ["whs_01jz0000000000000000000000"] })
const apiKeyId = Schema.String.annotations({ description: "The API key that it concerns", examples: ["key_01jz0000000000000000000000"] })
const at = (description: string) =>
  Schema.String.annotations({ description, jsonSchema: { type: "string", format: "date-time", description } })

/** A kind: the schema of its data, whether a vault is involved, and when it occurs. */
export interface Definition<A, I> {
  readonly data: Schema.Schema<A, I>
  readonly schemaVersion: number
  /** `vault`: `vaultIds` names the vault; `entity`: `vaultIds` is null, and vault filters do not apply. */
  readonly scope: "vault" | "entity"
  readonly when: string
}

const define = <A, I>(scope: "vault" | "entity", when: string, data: Schema.Schema<A, I>): Definition<A, I> => ({
  data,
  schemaVersion: 1,
  scope,
  when
})

/** Every kind that is recorded and can be subscribed to. */
export const kinds = {
  "transaction.pending": define("vault", "A transaction was seen before it was included in a block", transaction),
  "transaction.confirmed": define("vault", "A transaction settled", transaction),
  "transaction.failed": define("vault", "A transaction is in a block but reverted", transaction),
  "transaction.replaced": define("vault", "A pending transaction was replaced by another", transaction),
  "transaction.dropped": define("vault", "A pending transaction will not settle", transaction),
  "transaction.reorged": define(
    "vault",
    "A confirmed transaction is no longer confirmed, as after a re-organization of the chain; unless it is pending, the event of its new status follows",
    transaction
  ),
  "transaction.updated": define("vault", "Another field of a transaction than its status changed", transaction),
  "deposit_address.created": define(
    "vault",
    "A vault has a new deposit address",
    Schema.Struct({ vaultId, depositAddress: DepositAddress })
  ),
  "balance.updated": define("vault", "A settled balance changed", Schema.Struct({ vaultId, balance: Balance })),
  "vault.created": define("vault", "A vault was created", Schema.Struct({ vaultId, vault: Vault })),
  "vault.updated": define(
    "vault",
    "A vault's label or networks changed, or it moved to another entity: an event of both",
    Schema.Struct({ vaultId, vault: Vault })
  ),
  "statement.sealed": define("vault", "The statement of a day was sealed", statement),
  "statement.revised": define("vault", "Late records changed a sealed day: its statement has another revision", statement),
  "webhook.disabled": define(
    "entity",
    "A webhook was disabled automatically",
    Schema.Struct({
      webhookId,
      webhook: Schema.Struct({
        id: webhookId,
        status: Schema.Literal("DISABLED").annotations({ description: "Its status" }),
        disabledReason: Schema.Literal("FAILING", "GONE").annotations({
          description: "FAILING: no 2xx response for too long; GONE: the endpoint returned 410 twice"
        }),
        disabledAt: at("When it was disabled")
      })
    })
  ),
  "webhook.secret_rotated": define(
    "entity",
    "A webhook has a new signing secret",
    Schema.Struct({
      webhookId,
      webhook: Schema.Struct({
        id: webhookId,
        previousSecretExpiresAt: at("When the previous secret expires; until then requests are signed with both")
      })
    })
  ),
  "api_key.expiring": define(
    "entity",
    "An API key expires in 30 days, 7 days or 1 day",
    Schema.Struct({
      apiKeyId,
      apiKey: Schema.Struct({
        id: apiKeyId,
        label: Schema.String.annotations({ description: "Free text for people", examples: ["Ledger import"] }),
        userId: Schema.String.annotations({ description: "The user that the key is bound to", examples: ["user_ada"] }),
        expiresAt: at("When it expires"),
        lastUsedAt: Schema.NullOr(at("When it was used last")).annotations({ description: "When it was used last; null: never" })
      }),
      daysBefore: Schema.Int.annotations({
        description: "Which warning this is: 30, 7 or 1 days before the expiry",
        jsonSchema: { type: "integer", minimum: 1, description: "Which warning this is: 30, 7 or 1 days before the expiry", examples: [7] }
      })
    })
  )
} as const

/** The name of a recorded kind. */
export type Kind = keyof typeof kinds

/** The data of a kind. */
export type DataOf<K extends Kind> = Schema.Schema.Type<(typeof kinds)[K]["data"]>

/** Only sent by a ping: cannot be subscribed to, is not logged. */
export const PING = "webhook.ping"

export const isKind = (text: string): text is Kind => Object.hasOwn(kinds, text)

/** Every kind by name, for schemas that list them. */
export const names = Object.keys(kinds).filter(isKind)

const description = "Event kind. Values may be added."

/** A kind in a request. */
export const KindName = Schema.Literal(...(names as [Kind, ...Array<Kind>])).annotations({
  identifier: "EventKind",
  title: "EventKind",
  description
})

/** A kind in a response. Documented as the current kinds; a kind stored by a newer version is returned too. */
export const StoredKind = Schema.String.annotations({
  identifier: "EventKind",
  jsonSchema: { type: "string", enum: names, title: "EventKind", description }
})
