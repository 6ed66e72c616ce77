/** The doctor's checks of Temporal: connection, namespace, search attributes, and whether workers poll its queues. */
import type { Client } from "@temporalio/client"
import { temporal as proto } from "@temporalio/proto"
import { Cause, Effect, Exit } from "effect"
import { workflows } from "../../../workflows/contract.ts"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { livePid } from "../../runtime/embedded/Process.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type Connected, connectTo } from "../../runtime/temporal/Connection.ts"
import { missingIn, searchAttributes as required, type SearchAttribute } from "../../runtime/temporal/searchAttributes.ts"
import { grpcErrorOf, NOT_FOUND, PERMISSION_DENIED, TemporalCallFailed, temporalCall } from "../../runtime/temporal/temporalCall.ts"
import { type Finding, fault, notice, well, why } from "./Finding.ts"

const { TASK_QUEUE_TYPE_WORKFLOW } = proto.api.enums.v1.TaskQueueType
const statusOf = ({ cause }: TemporalCallFailed): number | undefined => grpcErrorOf(cause)?.code

const server = ({ client }: Connected) =>
  Effect.map(
    temporalCall(() => client.workflowService.getSystemInfo({})),
    ({ serverVersion }) => well("Temporal", `server ${serverVersion} answers`)
  )

const namespaceOf = ({ client }: Connected, namespace: string): Effect.Effect<Finding, TemporalCallFailed> =>
  temporalCall(() => client.workflowService.describeNamespace({ namespace })).pipe(
    Effect.as(well("Namespace", namespace)),
    Effect.catchIf(
      (error) => statusOf(error) === NOT_FOUND,
      () =>
        Effect.succeed(
          fault(
            "Namespace",
            `There is no namespace ${namespace}.`,
            `Create it (\`temporal operator namespace create --namespace ${namespace}\`), or set TEMPORAL_NAMESPACE.`,
            5
          )
        )
    )
  )

const namesOf = (attributes: ReadonlyArray<SearchAttribute>): string => attributes.map(({ name }) => name).join(", ")

const searchAttributes = ({ client }: Connected, namespace: string): Effect.Effect<Finding, TemporalCallFailed> =>
  temporalCall(() => client.connection.operatorService.listSearchAttributes({ namespace })).pipe(
    Effect.map(({ customAttributes }) => {
      const missing = missingIn(customAttributes)
      return missing.length === 0
        ? well("Search attributes", namesOf(required))
        : notice(
            "Search attributes",
            `${namesOf(missing)} ${missing.length === 1 ? "is" : "are"} not registered.`,
            `A worker registers them if it is allowed to; otherwise run \`temporal operator search-attribute create --namespace ${namespace} ${missing.map(({ name, type }) => `--name ${name} --type ${type}`).join(" ")}\`.`
          )
    }),
    Effect.catchIf(
      (error) => statusOf(error) === PERMISSION_DENIED,
      () =>
        Effect.succeed(
          notice(
            "Search attributes",
            "Search attributes cannot be listed on this cluster.",
            `Make sure that the namespace has ${required.map(({ name, type }) => `${name} (${type})`).join(", ")}.`
          )
        )
    )
  )

/** How many workers polled a task queue in the last five minutes. */
const pollersOf = (client: Client, namespace: string, taskQueue: string): Effect.Effect<number, TemporalCallFailed> =>
  Effect.map(
    temporalCall(() =>
      client.workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: TASK_QUEUE_TYPE_WORKFLOW })
    ),
    ({ pollers }) => new Set(pollers?.map(({ identity }) => identity)).size
  )

const worker = ({ client }: Connected, namespace: string, taskQueue: string): Effect.Effect<Finding, TemporalCallFailed> =>
  Effect.map(pollersOf(client, namespace, taskQueue), (count) =>
    count > 0
      ? well("Workers", `${count} polled ${taskQueue} in the last five minutes`)
      : notice(
          "Workers",
          `None polled ${taskQueue} in the last five minutes.`,
          "Deliveries wait until `custody start` runs with the worker role."
        )
  )

/** How many workflows of other task queues are looked at, and how many queues are named. */
const LOOKED_AT = 1_000,
  NAMED = 5

/** Workflows that wait on another task queue, which no worker polls: those from before a change of TEMPORAL_TASK_QUEUE. */
const otherQueues = (
  { client }: Connected,
  namespace: string,
  taskQueue: string
): Effect.Effect<ReadonlyArray<Finding>, TemporalCallFailed> =>
  Effect.gen(function* () {
    const types = Object.values(workflows).map((type) => `"${type}"`)
    const { executions } = yield* temporalCall(() =>
      client.workflowService.listWorkflowExecutions({
        namespace,
        pageSize: LOOKED_AT,
        query: `ExecutionStatus = "Running" AND TaskQueue != "${taskQueue}" AND WorkflowType IN (${types.join(", ")})`
      })
    )
    const idle: Array<string> = []
    for (const [name, waiting] of Map.groupBy(executions, (execution) => execution.taskQueue ?? ""))
      if ((yield* pollersOf(client, namespace, name)) === 0) idle.push(`${waiting.length} on ${name}`)
    if (idle.length === 0) return []
    const more = idle.length > NAMED ? `, and others on ${idle.length - NAMED} more` : ""
    return [
      notice(
        "Other task queues",
        `Workflows wait on task queues that no worker polled in the last five minutes: ${idle.slice(0, NAMED).join(", ")}${more}.`,
        "If one is an earlier TEMPORAL_TASK_QUEUE, terminate them: then they start again on the present one. docs/temporal.md has the command."
      )
    ]
  })

/** All checks of Temporal. */
export const temporal = Effect.gen(function* () {
  const settings = yield* Settings
  const dataDir = yield* DataDir
  const runs = livePid(dataDir.at("run", "temporal.pid"), dataDir.at("temporal.db")) !== undefined
  const address = settings.temporalAddress ?? (runs ? dataDir.servers().temporalAddress : undefined)
  if (address === undefined) return [well("Temporal", "the embedded server is not running; `custody start` starts it")]
  const { temporalNamespace: namespace, temporalTaskQueue: taskQueue } = settings
  const exit = yield* Effect.exit(
    Effect.acquireUseRelease(
      connectTo(settings, address),
      (connected) =>
        Effect.gen(function* () {
          const first = [yield* server(connected), yield* namespaceOf(connected, namespace)]
          if (first.some(({ state }) => state === "fault")) return first
          return [
            ...first,
            yield* searchAttributes(connected, namespace),
            yield* worker(connected, namespace, taskQueue),
            ...(yield* otherQueues(connected, namespace, taskQueue))
          ]
        }),
      ({ connection }) => Effect.ignore(temporalCall(() => connection.close()))
    ).pipe(Effect.timeout("15 seconds"))
  )
  const embedded =
    settings.temporalAddress === undefined
      ? [
          well(
            "Embedded Temporal",
            `${address} and its UI listen on loopback only; they have no authentication, so anybody on this machine can use them`
          )
        ]
      : []
  if (Exit.isSuccess(exit)) return [...exit.value, ...embedded]
  const error = Cause.squash(exit.cause)
  const cause = error instanceof TemporalCallFailed ? error.cause : error
  const advice =
    settings.temporalAddress === undefined
      ? `See ${dataDir.at("log", "temporal.log")}; \`custody start\` restarts a server whose service has ended; one of a running service is reached only where that runs.`
      : "Check TEMPORAL_ADDRESS and TEMPORAL_TLS_* or TEMPORAL_API_KEY. Reads work without Temporal; deliveries wait."
  return [fault("Temporal", `${address} cannot be reached: ${why(cause)}.`, advice, 5)]
})
