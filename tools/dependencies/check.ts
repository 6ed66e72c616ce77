/**
 * The dependency part of `bun run check`: licenses and known vulnerabilities. An unreachable registry does not fail the
 * check, because nothing is known then; the output says so.
 */
import { audit } from "./audit.ts"
import { refused } from "./licenses.ts"
import { packages } from "./packages.ts"

const all = [...packages().values()]
const installed = all.filter((one) => one.installed)
const missing = all.length - installed.length

const unlicensed = refused(all)
if (unlicensed.length > 0) {
  console.error(`licenses: not on the list of tools/dependencies/licenses.ts:\n${unlicensed.map((line) => `  ${line}`).join("\n")}`)
} else {
  console.log(`licenses: ${installed.length} packages are on the list; ${missing} of other platforms are not installed and not checked`)
}

const found = await audit()
if (found.state === "unreachable") {
  console.log(`audit: NOT DONE, the registry cannot be reached (${found.why}). Run \`bun audit\` where it can be.`)
} else if (found.state === "vulnerable") {
  console.error(`audit: known vulnerabilities:\n${found.advisories.map((line) => `  ${line}`).join("\n")}`)
} else {
  console.log(`audit: no known vulnerability in ${all.length} packages`)
}

process.exitCode = unlicensed.length > 0 || found.state === "vulnerable" ? 1 : 0
