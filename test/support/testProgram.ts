/** The tests' program: what can kill or measure it is loaded first, and it decodes the rows of every statement. */
import "./failpoints.ts"
import "./explain.ts"
import { decodeAllRows } from "../../src/runtime/database/decodeRows.ts"
import "../../src/main.ts"

decodeAllRows()
