/** Starts the workflows of notices. Each outlives its starter, and each notice is sent once. Decision D-23. */
import { ParentClosePolicy, startChild, WorkflowIdReusePolicy } from "@temporalio/workflow"
import { workflows } from "./contract.ts"

export const announce = async (notices: ReadonlyArray<string>): Promise<void> => {
  for (const noticeId of notices) {
    await startChild(workflows.notify, {
      workflowId: noticeId,
      args: [{ noticeId }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE
    }).catch(() => {
      // It is running already, or the sweeper starts it: the notice is in the database.
    })
  }
}
