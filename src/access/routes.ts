/** The API's routes about access itself, the audit log and the request's own key, with what they need. */
import { Layer } from "effect"
import { AuditLogRepo } from "./audit/AuditLogRepo.ts"
import * as audit from "./audit/handlers.ts"
import { CredentialRepo } from "./visibility/CredentialRepo.ts"
import * as credential from "./visibility/handlers.ts"

export const layer = Layer.mergeAll(audit.layer, credential.layer).pipe(Layer.provide([AuditLogRepo.layer, CredentialRepo.layer]))
