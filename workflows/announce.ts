/** Starts the workflows of notices. Each outlives its starter, and each notice is sent once. Decision D-23. */
import { ParentClosePolicy, startChild, WorkflowIdReusePolicy } from "@temporalio/workflow"
import { searchKeys, workflows } from "./contract.ts"

/** `organizationOf` names a notice's organization, if the namespace has the search attributes. */
export const announce = async (notices: ReadonlyArray<string>, organizationOf: (noticeId: string) => string | undefined): Promise<void> => {
  for (const noticeId of notices) {
    const organizationId = organizationOf(noticeId)
    await startChild(workflows.notify, {
      workflowId: noticeId,
      args: [{ noticeId, ...(organizationId === undefined ? {} : { organizationId }) }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
      ...(organizationId === undefined ? {} : { typedSearchAttributes: [{ key: searchKeys.organizationId, value: organizationId }] })
    }).catch(() => {
      // It is running already, or the sweeper starts it: the notice is in the database.
    })
  }
}
