/** The handler of the audit log. Decision D-50. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "../../app/Api.ts"
import { answerJson, Pages } from "../../http/Page.ts"
import { Principal } from "../credentials/Principal.ts"
import { reads } from "../visibility/Admission.ts"
import { AuditLogRepo, entryJson } from "./AuditLogRepo.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "auditLog",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const pages = yield* Pages
    const log = yield* AuditLogRepo

    return handlers.handleRaw(
      "listAuditLog",
      read("listAuditLog", ({ urlParams: { cursor, limit, ...filters } }) =>
        Effect.flatMap(Principal, ({ organizationId }) =>
          Effect.map(
            pages.cut({
              of: { list: "audit-log", filters },
              limit,
              cursor,
              keyLength: 2,
              fetch: (after, take) => log.list(organizationId, filters, after, take),
              keyOf: (row) => [row.at, row.id]
            }),
            (found) => answerJson(found, entryJson)
          )
        )
      )
    )
  })
)
