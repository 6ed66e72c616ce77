/**
 * The connection to Temporal. It is established in the background and retried, so the program and its servers can start
 * in any order: reads and webhook management never wait for Temporal. The client and the worker of a process share one
 * native connection, which lets a workflow's first task skip the round trip to the server.
 */

import * as fs from "node:fs"
import { Client } from "@temporalio/client"
import type { DataConverter } from "@temporalio/common"
// Not the package's index, which also loads the workers and webpack: a process without the worker's role needs neither.
import { NativeConnection } from "@temporalio/worker/lib/connection"
import type { NativeConnectionOptions } from "@temporalio/worker/lib/connection-options"
import { Context, Data, Deferred, Effect, type Layer, Option, Redacted, Schedule } from "effect"
import { MasterKey } from "../crypto/MasterKey.ts"
import { Settings } from "../settings/Settings.ts"
import type { Values } from "../settings/table.ts"
import { patchSdk } from "./bunCompatibility.ts"
import { payloadCodec } from "./payloadCodec.ts"
import { installRuntime } from "./sdkLog.ts"
import { temporalCall } from "./temporalCall.ts"

/** Temporal is unavailable. */
export class TemporalUnavailable extends Data.TaggedError("TemporalUnavailable")<{ readonly message: string }> {}

/** What an established connection provides. */
export interface Connected {
  readonly connection: NativeConnection
  readonly client: Client
  /** The payload converter of clients and workers. */
  readonly dataConverter: DataConverter
}

/** The server's address; the embedded one's is known only after its start. */
export class TemporalAddress extends Context.Tag("custody/TemporalAddress")<
  TemporalAddress,
  { readonly address: string; readonly ui: string }
>() {}

const read = (file: string | undefined) => (file === undefined ? undefined : fs.readFileSync(file))

const tlsOf = (settings: Values): Pick<NativeConnectionOptions, "tls"> => {
  const { temporalTlsCaFile, temporalTlsCertFile, temporalTlsKeyFile, temporalTlsServerName } = settings
  const [ca, crt, key] = [read(temporalTlsCaFile), read(temporalTlsCertFile), read(temporalTlsKeyFile)]
  const wanted =
    settings.temporalTls === "on" ||
    settings.temporalApiKey !== undefined ||
    ca !== undefined ||
    crt !== undefined ||
    temporalTlsServerName !== undefined
  if (!wanted) return {}
  return {
    tls: {
      ...(ca === undefined ? {} : { serverRootCACertificate: ca }),
      ...(crt === undefined || key === undefined ? {} : { clientCertPair: { crt, key } }),
      ...(temporalTlsServerName === undefined ? {} : { serverNameOverride: temporalTlsServerName })
    }
  }
}

let installed = false
const install = () => {
  if (installed) return
  installed = true
  patchSdk()
  installRuntime()
}

/** A connection to the server at this address, as configured; the cause of its failure is the SDK's error. */
export const connectTo = (settings: Values, address: string, dataConverter: DataConverter = {}) =>
  temporalCall(async (): Promise<Connected> => {
    install()
    const connection = await NativeConnection.connect({
      address,
      ...tlsOf(settings),
      ...(settings.temporalApiKey === undefined ? {} : { apiKey: Redacted.value(settings.temporalApiKey) })
    })
    return { connection, client: new Client({ connection, namespace: settings.temporalNamespace, dataConverter }), dataConverter }
  })

export class TemporalConnection extends Effect.Service<TemporalConnection>()("custody/TemporalConnection", {
  scoped: Effect.gen(function* () {
    const settings = yield* Settings
    const { address, ui } = yield* TemporalAddress
    const sealing = settings.temporalPayloadCodec !== "off"
    const dataConverter: DataConverter = {
      payloadCodecs: [payloadCodec(yield* MasterKey, sealing)],
      ...(sealing ? { failureConverterPath: Bun.resolveSync("./failureConverter.ts", import.meta.dir) } : {})
    }
    const connected = yield* Deferred.make<Connected>()

    yield* Effect.forkScoped(
      connectTo(settings, address, dataConverter).pipe(
        Effect.tapError((error) => Effect.logWarning(`Temporal at ${address} cannot be reached yet: ${String(error.cause)}`)),
        Effect.retry(Schedule.exponential("200 millis", 1.5).pipe(Schedule.union(Schedule.spaced("3 seconds")))),
        Effect.flatMap((made) => Deferred.succeed(connected, made))
      )
    )
    const now = Effect.flatMap(
      Deferred.poll(connected),
      Option.getOrElse(() => Effect.fail(new TemporalUnavailable({ message: `Temporal at ${address} cannot be reached` })))
    )
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.flatMap(now, ({ connection }) => temporalCall(() => connection.close()))))

    // The server may respond but have lost the namespace, which requires a query to its database and is therefore not
    // checked every time.
    const [hasNamespace, askAgain] = yield* Effect.cachedInvalidateWithTTL(
      Effect.flatMap(now, ({ client }) =>
        temporalCall(() => client.workflowService.describeNamespace({ namespace: settings.temporalNamespace }))
      ),
      "5 seconds"
    )

    return {
      /** The connection; waits until it is established. */
      ready: Deferred.await(connected),
      /** The connection, or {@link TemporalUnavailable} if it is not established yet. */
      now,
      /** Whether the server responds within two seconds and has the namespace. */
      isAvailable: Effect.flatMap(now, ({ client }) => temporalCall(() => client.workflowService.getSystemInfo({}))).pipe(
        Effect.zipRight(
          Effect.tapError(hasNamespace, () => askAgain),
          { concurrent: true }
        ),
        Effect.timeout("2 seconds"),
        Effect.match({ onFailure: () => false, onSuccess: () => true })
      ),
      namespace: settings.temporalNamespace,
      /** The page of a workflow in the Temporal UI. A delivery's workflow has the delivery's id. */
      linkTo: (workflowId: string) =>
        `${ui.replace(/\/$/, "")}/namespaces/${encodeURIComponent(settings.temporalNamespace)}/workflows/${encodeURIComponent(workflowId)}`,
      /** Task queue of workflows; the others' names begin with it. */
      taskQueue: settings.temporalTaskQueue
    }
  })
}) {
  static readonly layer: Layer.Layer<TemporalConnection, never, Settings | TemporalAddress | MasterKey> = this.Default
}
