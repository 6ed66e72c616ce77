/**
 * Traces, metrics and logs to an OpenTelemetry collector, when one is configured. What has the form of a secret is hidden
 * before it leaves: the framework's spans name paths and headers, and a caller may put a secret where it does not
 * belong. Setting: OTEL_EXPORTER_OTLP_ENDPOINT.
 */

import { FetchHttpClient, HttpBody, HttpClient, HttpClientRequest } from "@effect/platform"
import { Effect, Layer } from "effect"
import { Settings } from "../settings/Settings.ts"
import { masked } from "./Log.ts"

/** The request without what has the form of a secret. The exporter sends JSON as bytes; another body would not be looked into, so it is not sent. */
const withoutSecrets = (request: HttpClientRequest.HttpClientRequest) =>
  request.body._tag === "Uint8Array"
    ? HttpClientRequest.setBody(request, HttpBody.text(masked(new TextDecoder().decode(request.body.body)), request.body.contentType))
    : HttpClientRequest.setBody(request, HttpBody.empty)

const exporter = Layer.provide(
  Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, HttpClient.mapRequest(withoutSecrets))),
  FetchHttpClient.layer
)

/** Exports when an endpoint is set; otherwise no spans are made, and the exporter's library is not loaded. */
export const layer = Layer.unwrapEffect(
  Effect.gen(function* () {
    const { otlpEndpoint } = yield* Settings
    if (otlpEndpoint === undefined) return Layer.setTracerEnabled(false)
    const Otlp = yield* Effect.promise(() => import("@effect/opentelemetry/Otlp"))
    return Otlp.layerJson({ baseUrl: otlpEndpoint, resource: { serviceName: "custody-data-service" } }).pipe(Layer.provide(exporter))
  })
)
