/** The contract of the audit log. Decision D-50. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { Page, PageParams } from "../../http/Page.ts"
import { query } from "../../http/Parameters.ts"
import { InvalidList } from "../../http/Problem.ts"
import { TimestampFrom, TimestampParam } from "../../values/Timestamp.ts"
import { AuditReadable } from "../visibility/scopeMiddleware.ts"
import { AuditEntry } from "./AuditEntry.ts"
import { actions } from "./AuditTrail.ts"

const anId = (description: string) =>
  Schema.String.pipe(Schema.pattern(/^[^\x00-\x1f\x7f-\x9f]{1,100}$/)).annotations({
    description,
    message: () => "must be an id of 1 to 100 characters"
  })

export class AuditLogApi extends HttpApiGroup.make("auditLog")
  .add(
    HttpApiEndpoint.get("listAuditLog", "/audit-log")
      .setUrlParams(
        query({
          ...PageParams,
          actor: Schema.optional(anId("Only by this API key, session or user")),
          action: Schema.optional(Schema.Literal(...actions).annotations({ title: "AuditAction", description: "Only this action" })),
          target: Schema.optional(
            anId(
              "Only what was done to this webhook, recovery, delivery, API key, user or organization; with a user's id, also to the account"
            )
          ),
          occurredAfter: Schema.optional(TimestampFrom.annotations({ description: "Only at or after this" })),
          occurredBefore: Schema.optional(TimestampParam.annotations({ description: "Only at or before this" }))
        })
      )
      .addSuccess(Page(AuditEntry, "AuditEntryPage"))
      .addError(InvalidList)
      .middleware(AuditReadable)
      .annotate(OpenApi.Summary, "List the audit log")
      .annotate(
        OpenApi.Description,
        "Who did what to webhooks, deliveries, API keys and portal accounts of the organization in the last 400 days, most recent first. Requires an owner-level key without a vault allowlist."
      )
  )
  .annotate(OpenApi.Title, "Audit log")
  .annotate(OpenApi.Description, "Who did what, when and from where. Requires the scope `webhook:read` and an owner-level key.") {}
