/**
 * The envelope: the text that matching webhooks receive and the log shows. It is written once, when the event is
 * recorded, and never parsed and serialized again; nothing in it depends on an attempt. Spec: Event kinds. Decision D-18.
 */
import { Schema } from "effect"
import { timestamp } from "../../values/Timestamp.ts"
import { type DataOf, type Kind, kinds } from "./Kind.ts"

/** An event before it has an id. */
export interface Occurrence<K extends Kind = Kind> {
  readonly kind: K
  /** When it happened, UTC ISO 8601. */
  readonly date: string
  readonly organizationId: string
  readonly entityId: string
  /** The vault involved; null for kinds without a vault. */
  readonly vaultId: string | null
  readonly data: DataOf<K>
  /** Entities that a reader of the event must have access to, if more than `entityId`. */
  readonly audience?: ReadonlyArray<string>
  /** Receives the event's id once it has one. */
  readonly recordedIn?: Array<string>
}

/** The envelope's text, its keys in the documented order. */
export const write = (id: string, { data, date, entityId, kind, vaultId }: Occurrence): string =>
  JSON.stringify({
    id,
    kind,
    schemaVersion: kinds[kind].schemaVersion,
    date,
    entityId,
    vaultIds: vaultId === null ? null : [vaultId],
    data
  })

/** The schema of a kind's envelope, for the OpenAPI document and the golden files. */
export const schemaOf = (kind: Kind) => {
  const { data, schemaVersion, scope } = kinds[kind]
  return Schema.Struct({
    id: Schema.String.annotations({ description: "Event id; deduplicate on it", examples: ["evt_01jz0000000000000000000000"] }),
    kind: Schema.Literal(kind).annotations({ description: "What happened" }),
    schemaVersion: Schema.Literal(schemaVersion).annotations({ description: "Version of the kind's schema" }),
    date: timestamp("When the event occurred; order by it, not by arrival"),
    entityId: Schema.String.annotations({
      description: "Operating unit (entity) that it belongs to",
      examples: ["entity_k3vwj9pbkx2z8z81zfse2sm8ra"]
    }),
    vaultIds: (scope === "vault" ? Schema.Array(Schema.String) : Schema.Null).annotations({
      description: scope === "vault" ? "The vault in which it occurred, as a list of one" : "Null: it belongs to no vault"
    }),
    data
  })
}
