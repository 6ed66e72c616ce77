import type { EventData, VaultEventKind } from "./generated/events.ts"

/** The body of a delivery, by the kind of its event. */
export type ReceivedEvent<K extends keyof EventData = keyof EventData> = {
  readonly [Kind in K]: {
    /** The event's id: deduplicate on it. */
    readonly id: string
    readonly kind: Kind
    readonly schemaVersion: 1
    /** When it occurred: order by it. */
    readonly date: string
    readonly entityId: string
    readonly vaultIds: Kind extends VaultEventKind ? ReadonlyArray<string> : null
    readonly data: EventData[Kind]
  }
}[K]
