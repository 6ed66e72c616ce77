import { Schema } from "effect"
import { Keys } from "./demoKeys.ts"

/** `DATA_DIR/demo.json`: addresses and keys, for scripts. */
export const DemoFile = Schema.Struct({
  baseUrl: Schema.String,
  platformUrl: Schema.String,
  platformToken: Schema.String,
  temporalUi: Schema.String,
  receiverUrl: Schema.String,
  /** Accepts the deliveries of any webhook. */
  playUrl: Schema.optional(Schema.String),
  organizationId: Schema.String,
  entityIds: Schema.Array(Schema.String),
  vaultIds: Schema.Array(Schema.String),
  keys: Keys,
  webhookId: Schema.String,
  /** When the data was first loaded here. */
  loadedAt: Schema.optional(Schema.String)
})
