/**
 * With the payload codec, messages and stack traces of failures are payloads too. The Temporal SDK loads this file by its
 * path.
 */
import { DefaultFailureConverter } from "@temporalio/common"

export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
