/** The bare workflow of the floor: one local activity. */
import { proxyLocalActivities } from "@temporalio/workflow"

const { post } = proxyLocalActivities<{ post(hash: string): Promise<number> }>({ startToCloseTimeout: "20 seconds" })

export const floor = (hash: string): Promise<number> => post(hash)
