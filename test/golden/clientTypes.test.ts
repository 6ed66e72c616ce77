import { expect, test } from "bun:test"
import * as path from "node:path"
import { apiRoutesFile, custody, eventsFile, operationsFile, portalRoutesFile, webhooks } from "../../tools/generateClient.ts"
import { pythonModels, pythonOperations } from "../../tools/python/operations.ts"
import { golden } from "../support/golden.ts"

const root = path.resolve(import.meta.dir, "../..")

const formatted = async (file: string, text: string) => {
  const child = Bun.spawn([path.join(root, "node_modules/.bin/biome"), "check", "--write", `--stdin-file-path=${file}`], {
    cwd: root,
    stdin: new Blob([text]),
    stdout: "pipe",
    stderr: "pipe"
  })
  const [out, errors, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  expect([code, errors]).toEqual([0, ""])
  return out
}

/** Compares a generated file of the repository with its text, or writes it. */
const generated = (file: string, text: string) => golden(path.relative(path.join(root, "test/golden/files"), path.join(root, file)), text)

test("the client's types and operations, and the routes of the portal's pages, match the contract", async () => {
  for (const [file, text] of [
    ["src/client/generated/custody.ts", custody()],
    ["src/client/generated/webhooks.ts", webhooks()],
    ["src/client/generated/events.ts", eventsFile()],
    ["src/client/generated/operations.ts", operationsFile()],
    ["src/portal/web/apiRoutes.ts", apiRoutesFile()],
    ["src/portal/web/portalRoutes.ts", portalRoutesFile()]
  ] as const) {
    generated(file, await formatted(file, text))
  }
})

test("the Python client's models and operations match the contract", () => {
  generated("clients/python/src/custody_client/models.py", pythonModels())
  generated("clients/python/src/custody_client/operations.py", pythonOperations())
})
