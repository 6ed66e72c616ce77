/**
 * The complete public contract. The server, the OpenAPI document, the typed client and the route golden file are derived
 * from it.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import { AuditLogApi } from "../access/audit/AuditLogApi.ts"
import { EntitiesApi } from "../access/entities/EntitiesApi.ts"
import { CredentialApi } from "../access/visibility/CredentialApi.ts"
import { CatalogApi } from "../custody/catalog/CatalogApi.ts"
import { PortfolioApi } from "../custody/portfolio/PortfolioApi.ts"
import { StatementsApi } from "../custody/statements/StatementsApi.ts"
import { VaultsApi } from "../custody/vaults/VaultsApi.ts"
import { DeliveriesApi } from "../delivery/deliveries/DeliveriesApi.ts"
import { RecoveriesApi } from "../delivery/recoveries/RecoveriesApi.ts"
import { WebhooksApi } from "../delivery/webhooks/WebhooksApi.ts"
import { FeedApi } from "../events/feed/FeedApi.ts"
import { EventsApi } from "../events/log/EventsApi.ts"
import { ProofApi } from "../events/proof/ProofApi.ts"
import { problems } from "../http/Problem.ts"

/** Errors of every route. */
const UriTooLong = problems("UriTooLong", "uri_too_long")
const InternalError = problems("InternalError", "internal_error")
const ServiceUnavailable = problems("ServiceUnavailable", "service_unavailable")

export class Api extends HttpApi.make("custody")
  .add(VaultsApi)
  .add(PortfolioApi)
  .add(StatementsApi)
  .add(CatalogApi)
  .add(EntitiesApi)
  .add(WebhooksApi)
  .add(EventsApi)
  .add(FeedApi)
  .add(DeliveriesApi)
  .add(RecoveriesApi)
  .add(CredentialApi)
  .add(ProofApi)
  .add(AuditLogApi)
  .prefix("/v1")
  .addError(UriTooLong)
  .addError(InternalError)
  .addError(ServiceUnavailable)
  .annotate(OpenApi.Title, "Custody Data Service API")
  .annotate(OpenApi.Version, "1.0.0") {}
