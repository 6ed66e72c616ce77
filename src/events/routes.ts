/** The API's routes of the event log, the event feed and its proofs, with what they need. */
import { Layer } from "effect"
import { AccessChecks } from "../access/credentials/AccessChecks.ts"
import { SigningKeys } from "../runtime/crypto/SigningKeys.ts"
import { FeedFollower } from "./feed/FeedFollower.ts"
import { FeedPages } from "./feed/FeedPages.ts"
import { FeedRepo } from "./feed/FeedRepo.ts"
import { FeedStreams } from "./feed/FeedStreams.ts"
import * as feed from "./feed/handlers.ts"
import { OpenReaders } from "./feed/OpenReaders.ts"
import { EventsRepo } from "./log/EventsRepo.ts"
import * as log from "./log/handlers.ts"
import { CheckpointsRepo } from "./proof/CheckpointsRepo.ts"
import * as proof from "./proof/handlers.ts"

/** Also has the open streams, which the listener ends before it stops. */
export const layer = Layer.mergeAll(log.layer, feed.layer, proof.layer).pipe(
  Layer.provideMerge(FeedStreams.layer),
  Layer.provide(FeedPages.layer),
  Layer.provide(FeedFollower.layer),
  Layer.provide([FeedRepo.layer, AccessChecks.layer, OpenReaders.layer, EventsRepo.layer, CheckpointsRepo.layer, SigningKeys.layer])
)
