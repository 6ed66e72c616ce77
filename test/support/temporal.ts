/** Temporal as an operator sees it, and a server that a test can stop. */
import * as fs from "node:fs"
import * as path from "node:path"
import { Client, Connection, type ScheduleDescription, ScheduleNotFoundError, type WorkflowHandle } from "@temporalio/client"
import { Effect, Exit, Layer, Schedule, Scope } from "effect"
import { DataDir } from "../../src/runtime/embedded/DataDir.ts"
import * as EmbeddedTemporal from "../../src/runtime/embedded/Temporal.ts"
import { until } from "./receiver.ts"
import { serverFolder, servers, settingsOf } from "./servers.ts"

/** A client of the run's server, or of the one at `address`. */
export const operator = async (address?: string) => {
  const connection = await Connection.connect({ address: address ?? (await servers()).temporal })
  return { client: new Client({ connection }), close: () => connection.close() }
}

/** The signals that a workflow has received so far, in order. */
export const signalsOf = async (client: Client, workflowId: string): Promise<ReadonlyArray<string>> => {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory()
  return (events ?? []).flatMap(({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName ?? [])
}

/** The current details that a workflow shows in the Temporal UI. */
export const detailsOf = async (client: Client, workflowId: string): Promise<string> =>
  (await client.workflow.getHandle(workflowId).query<{ readonly currentDetails?: string }>("__temporal_workflow_metadata"))
    .currentDetails ?? ""

/**
 * The description of a schedule, once it is there. Temporal asks its own worker for it, and a question that gets lost there is
 * answered with the call's deadline, which is short for that reason.
 */
export const describeSchedule = (client: Client, id: string): Promise<ScheduleDescription> =>
  until(`schedule ${id}`, () =>
    client
      .withDeadline(Date.now() + 5_000, () => client.schedule.getHandle(id).describe())
      .catch((error) => {
        if (error instanceof ScheduleNotFoundError || /Failed to describe schedule/.test(String(error))) return undefined
        throw error
      })
  )

/** Waits until no task or activity of a workflow is under way: it waits for a time or for a signal, and loses none. */
export const atRest = async (handle: WorkflowHandle | undefined): Promise<WorkflowHandle> => {
  if (handle === undefined) throw new Error("no client of Temporal")
  await until(`the wait of ${handle.workflowId}`, async () => {
    const { raw } = await handle.describe()
    return raw.pendingWorkflowTask == null && (raw.pendingActivities ?? []).length === 0
  })
  return handle
}

/** A Temporal server of one's own, to kill, to empty and to start again at the same address. */
export class TemporalServer {
  readonly #folder = serverFolder()
  #scope: Scope.CloseableScope | undefined
  #ports: ReadonlyArray<readonly [string, string]> = []
  readonly #config: { readonly [name: string]: boolean | number }
  address = ""

  /** With these values of Temporal's dynamic configuration in addition to the program's. */
  constructor(config: { readonly [name: string]: boolean | number } = {}) {
    this.#config = config
  }

  async start(): Promise<void> {
    const scope = await Effect.runPromise(Scope.make())
    this.#scope = scope
    const { address, ui } = await Effect.runPromise(
      EmbeddedTemporal.acquireWith(this.#config).pipe(
        // For a moment, the port of a killed server is available to any other process, such as a connection of another test.
        Effect.retry({ while: ({ message }) => message.includes("in use"), schedule: Schedule.spaced("500 millis"), times: 60 }),
        Effect.provide(Layer.provideMerge(DataDir.layer, settingsOf(this.#folder, this.#ports))),
        Scope.extend(scope)
      )
    )
    this.address = address
    this.#ports = [
      ["EMBEDDED_TEMPORAL_PORT", address.split(":")[1] ?? ""],
      ["EMBEDDED_TEMPORAL_UI_PORT", new URL(ui).port]
    ]
  }

  /** Kills it at once; with `state` gone as well, all that it knew is lost. */
  async kill(state: "kept" | "lost"): Promise<void> {
    const pid = Number(fs.readFileSync(path.join(this.#folder, "run", "temporal.pid"), "utf8"))
    process.kill(pid, "SIGKILL")
    await this.#release()
    if (state === "lost")
      for (const name of fs.readdirSync(this.#folder)) if (name.startsWith("temporal.db")) fs.rmSync(path.join(this.#folder, name))
  }

  async #release(): Promise<void> {
    if (this.#scope !== undefined) await Effect.runPromise(Scope.close(this.#scope, Exit.void))
    this.#scope = undefined
  }

  async close(): Promise<void> {
    await this.#release()
    fs.rmSync(this.#folder, { recursive: true, force: true })
  }
}
