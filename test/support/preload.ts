/** Loaded before the tests: whatever a run started is ended with it. */
import { afterAll, setDefaultTimeout } from "bun:test"
import { closeAll } from "./servers.ts"

// Processes start and servers stop within tests: what is slow on a busy machine is not at fault.
setDefaultTimeout(60_000)

afterAll(closeAll)
