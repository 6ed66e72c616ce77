/** Loaded before the tests: stops everything that a run started. */
import { afterAll } from "bun:test"
import { closeAll } from "./servers.ts"

afterAll(closeAll)
