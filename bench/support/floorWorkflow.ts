/** The bare workflows of the floor: one local activity that posts one envelope, and one that posts a group of them at once. */
import { proxyLocalActivities } from "@temporalio/workflow"

interface Activities {
  readonly post: (hash: string) => Promise<number>
  readonly postAll: (hashes: ReadonlyArray<string>) => Promise<number>
}

const { post, postAll } = proxyLocalActivities<Activities>({ startToCloseTimeout: "20 seconds" })

export const floor = (hash: string): Promise<number> => post(hash)

export const floorGroup = (hashes: ReadonlyArray<string>): Promise<number> => postAll(hashes)
