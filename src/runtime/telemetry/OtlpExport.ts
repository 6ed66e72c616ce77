/** The exporter to a collector; loaded when one is configured. */
import * as Otlp from "@effect/opentelemetry/Otlp"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Effect, Layer } from "effect"
import { masked } from "./Log.ts"

/**
 * The request with secrets masked. The exporter sends JSON as bytes; any other body could not be inspected, so it is not
 * sent.
 */
const withoutSecrets = (request: HttpClientRequest.HttpClientRequest) =>
  request.body._tag === "Uint8Array"
    ? HttpClientRequest.setBody(request, HttpBody.text(masked(new TextDecoder().decode(request.body.body)), request.body.contentType))
    : HttpClientRequest.setBody(request, HttpBody.empty)

const exporter = Layer.provide(
  Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, HttpClient.mapRequest(withoutSecrets))),
  FetchHttpClient.layer
)

/** Exports traces, metrics and logs to the collector at this address. */
export const exportTo = (baseUrl: string) =>
  Otlp.layerJson({ baseUrl, resource: { serviceName: "custody-data-service" } }).pipe(Layer.provide(exporter))
