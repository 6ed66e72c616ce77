/** Loaded before the tests: whatever a run started is ended with it. */
import { afterAll } from "bun:test"
import { closeAll } from "./servers.ts"

afterAll(closeAll, 60_000)
