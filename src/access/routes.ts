/** The API's routes about access itself: the audit log, the entities that a key reaches and the key itself, with what they need. */
import { Layer } from "effect"
import { AuditLogRepo } from "./audit/AuditLogRepo.ts"
import * as audit from "./audit/handlers.ts"
import { EntitiesRepo } from "./entities/EntitiesRepo.ts"
import * as entities from "./entities/handlers.ts"
import { CredentialRepo } from "./visibility/CredentialRepo.ts"
import * as credential from "./visibility/handlers.ts"

export const layer = Layer.mergeAll(audit.layer, credential.layer, entities.layer).pipe(
  Layer.provide([AuditLogRepo.layer, CredentialRepo.layer, EntitiesRepo.layer])
)
