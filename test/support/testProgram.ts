/** The entry point of the tests' program: what can kill or measure it is loaded first. */
import "./failpoints.ts"
import "./explain.ts"
import "../../src/main.ts"
