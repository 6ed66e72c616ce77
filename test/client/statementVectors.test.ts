/** Statements of a vault as a service that errs or lies would answer: the published vectors. C-9, C-10. */
import { expect, test } from "bun:test"
import { createClient, NotVerifiable, type Statement, verifyStatements } from "../../src/client/index.ts"
import vectors from "../../src/client/statement-vectors.json" with { type: "json" }

type Item = number | object
interface Answers {
  readonly list: ReadonlyArray<Item>
  readonly revisions: ReadonlyArray<Item>
}

/** Whatever a service may answer: also a statement that was sealed before lines had fees. */
const statement = (item: Item): Partial<Pick<Statement, "date" | "revision">> =>
  typeof item === "number" ? (vectors.statements[item] ?? {}) : item

/** A client of a service that answers with these statements. */
const serviceOf = ({ list, revisions }: Answers) =>
  createClient({
    baseUrl: "https://custody.example.com",
    apiKey: "cds_test",
    fetch: async ({ url }) => {
      const { pathname, searchParams } = new URL(url)
      if (pathname === "/v1/jwks.json") return Response.json({ keys: vectors.keys })
      const asked = pathname.split("/statements/")[1]
      if (asked === undefined) return Response.json({ data: list.map(statement), pagination: { limit: 100, nextCursor: null } })
      const revision = Number(searchParams.get("revision"))
      for (const item of revisions) {
        if (typeof item === "object" && "for" in item && "answer" in item) {
          if (JSON.stringify(item.for) === JSON.stringify([asked, revision])) return Response.json(statement(Number(item.answer)))
        } else if (statement(item).date === asked && statement(item).revision === revision) return Response.json(statement(item))
      }
      return Response.json({ code: "not_found", requestId: "req_1" }, { status: 404 })
    }
  })

const { hash, list, revisions, until, vaultId } = vectors
const keys = { keys: vectors.keys }

test("the statements of the vectors are complete, with what was kept and without", async () => {
  for (const options of [{}, { hash }, { until }, { hash, until, keys }, { until: "2026-01-02" }])
    expect<unknown>(await verifyStatements(serviceOf({ list, revisions }), vaultId, options)).toEqual({
      valid: true,
      statements: vectors.statements.length,
      previousHash: null,
      hash: vectors.statements.at(-1)?.hash ?? "",
      days: list.toReversed().map((item) => vectors.statements[item])
    })
  expect(await verifyStatements(serviceOf({ list: [], revisions: [] }), vaultId)).toMatchObject({ valid: true, statements: 0 })
})

test("each tampering of the vectors is refused, and named", async () => {
  expect(vectors.invalid.length).toBeGreaterThan(50)
  const refused = async (one: (typeof vectors.invalid)[number]) => {
    const pinned = "keys" in one && one.keys !== undefined ? { keys: { keys: one.keys } } : {}
    const found = await verifyStatements(serviceOf(one), vaultId, { hash: one.hash, until: one.until, ...pinned })
    return [one.name, found.valid ? "complete" : found.difference]
  }
  const found = await Promise.all(vectors.invalid.map(refused))
  expect(found).toEqual(vectors.invalid.map(({ name, names }) => [name, expect.stringContaining(names)]))
})

test("an option that is not valid cannot be checked", async () => {
  for (const options of [{ until: "2026-02-30" }, { until: "yesterday" }, { hash: "abc" }, { keys: { keys: [] } }])
    await expect(verifyStatements(serviceOf({ list, revisions }), vaultId, options)).rejects.toThrow(NotVerifiable)
})

test("statements that are sealed while they are read do not make them incomplete", async () => {
  let reads = 0
  const service = serviceOf({ list, revisions })
  const meanwhile = {
    ...service,
    // The first time, the newest two days are not sealed yet and the others were read before they were revised.
    listStatements: (id: string, query: { readonly limit: number }) =>
      (reads++ === 0 ? serviceOf({ list: [5, 4, 1, 0], revisions }) : service).listStatements(id, query)
  }
  expect(await verifyStatements(meanwhile, vaultId)).toMatchObject({ valid: true, statements: vectors.statements.length })
  expect(reads).toBe(2)
})
