/** With the payload codec, messages and stack traces of failures are payloads, too. Loaded by the Temporal SDK by its path. */
import { DefaultFailureConverter } from "@temporalio/common"

export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
