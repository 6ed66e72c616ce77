/** Traces and metrics to an OpenTelemetry collector, when one is configured. Setting: OTEL_EXPORTER_OTLP_ENDPOINT. */

import * as Otlp from "@effect/opentelemetry/Otlp"
import { FetchHttpClient } from "@effect/platform"
import { Effect, Layer } from "effect"
import { Settings } from "../settings/Settings.ts"

/** Exports when configured; otherwise spans are not even made. */
export const layer = Layer.unwrapEffect(
  Effect.map(Settings, ({ otlpEndpoint }) =>
    otlpEndpoint === undefined
      ? Layer.setTracerEnabled(false)
      : Otlp.layerJson({ baseUrl: otlpEndpoint, resource: { serviceName: "custody-data-service" } }).pipe(
          Layer.provide(FetchHttpClient.layer)
        )
  )
)
