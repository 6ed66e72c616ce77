/**
 * Traces, metrics and logs to an OpenTelemetry collector, if one is configured. Text with the form of a secret is masked
 * first: the framework's spans contain paths and headers, and a client may put a secret in the wrong place. Setting:
 * OTEL_EXPORTER_OTLP_ENDPOINT.
 */
import { Effect, Layer } from "effect"
import { Settings } from "../settings/Settings.ts"

/** Exports if an endpoint is set; otherwise no spans are created and the exporter's library is not loaded. */
export const layer = Layer.unwrapEffect(
  Effect.gen(function* () {
    const { otlpEndpoint } = yield* Settings
    if (otlpEndpoint === undefined) return Layer.setTracerEnabled(false)
    const { exportTo } = yield* Effect.promise(() => import("./OtlpExport.ts"))
    return exportTo(otlpEndpoint)
  })
)
