/** Counts the actions that Temporal Cloud bills for a workflow, from its history: https://docs.temporal.io/cloud/actions. */
import { temporal } from "@temporalio/proto"

type Event = temporal.api.history.v1.IHistoryEvent
const { EventType } = temporal.api.enums.v1

/** Actions by the type of an event; the intent to start a child counts twice. */
const counted = new Map([
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, 1],
  [EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, 1],
  [EventType.EVENT_TYPE_TIMER_STARTED, 1],
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, 1],
  [EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, 1],
  [EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, 2]
])

/** Actions of a history. All local activities of one workflow task are one; heartbeats, which a history lacks, are left out. */
export const actionsOf = (events: ReadonlyArray<Event>): number => {
  const tasks = new Set<string>()
  let actions = 0
  for (const { activityTaskStartedEventAttributes: started, eventType, markerRecordedEventAttributes: marker } of events) {
    if (eventType != null) actions += counted.get(eventType) ?? 0
    if (marker != null) tasks.add(String(marker.workflowTaskCompletedEventId))
    if (started?.attempt != null) actions += started.attempt - 1
  }
  return actions + tasks.size
}
