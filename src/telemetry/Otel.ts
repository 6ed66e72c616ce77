/**
 * Traces, metrics and logs to an OpenTelemetry collector, when one is configured. What has the form of a secret is hidden
 * before it leaves: the framework's spans name paths and headers, and a caller may put a secret where it does not
 * belong. Setting: OTEL_EXPORTER_OTLP_ENDPOINT.
 */
import { Effect, Layer } from "effect"
import { Settings } from "../settings/Settings.ts"

/** Exports when an endpoint is set; otherwise no spans are made, and the exporter's library is not loaded. */
export const layer = Layer.unwrapEffect(
  Effect.gen(function* () {
    const { otlpEndpoint } = yield* Settings
    if (otlpEndpoint === undefined) return Layer.setTracerEnabled(false)
    const { exportTo } = yield* Effect.promise(() => import("./OtlpExport.ts"))
    return exportTo(otlpEndpoint)
  })
)
