/** An entity, the operating unit that vaults belong to, in API responses. C-11. */
import { Schema } from "effect"

/** An entity with its name. */
export const Entity = Schema.Struct({
  id: Schema.String.annotations({ description: "Opaque, prefixed entity_", examples: ["entity_k3vwj9pbkx2z8z81zfse2sm8ra"] }),
  name: Schema.String.annotations({ description: "Human-readable name", examples: ["Acme Europe"] })
}).annotations({ identifier: "Entity", title: "Entity" })
export type Entity = typeof Entity.Type
