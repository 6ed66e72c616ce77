/**
 * `bun run documents`: writes the API reference in Markdown, and the table of every rule, decision and goal with its tests, into
 * `dist`. Both are made from what is in the repository: the OpenAPI document, and the titles of the tests.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { documentAt } from "../src/app/openapi/OpenApi.ts"
import { apiDocument } from "./apiDocument.ts"
import { conformance } from "./conformance/conformance.ts"

const folder = path.resolve(import.meta.dir, "../dist")
fs.mkdirSync(folder, { recursive: true })
for (const [name, text] of [
  ["api.md", apiDocument(documentAt("/"))],
  ["conformance.md", conformance()]
] as const) {
  const file = path.join(folder, name)
  fs.writeFileSync(file, text)
  console.log(file)
}
