/** The program with what a test's environment asks for. */
import "./failpoints.ts"
import "./explain.ts"
import "../../src/main.ts"
