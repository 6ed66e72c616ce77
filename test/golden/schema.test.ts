import { expect, test } from "bun:test"
import pg from "pg"
import { golden } from "../support/golden.ts"
import { freshDatabase } from "../support/servers.ts"

/** Daily partitions of the tables that have them, those of transactions, and their indexes: one is shown of each table. */
const partition = /_\d{8}(?!\d)|(?<=\btransactions)_\d{2}(?!\d)/g

test("the database schema matches its golden file: tables, columns, constraints, indexes, functions", async () => {
  const client = new pg.Client({ connectionString: await freshDatabase() })
  await client.connect()
  const lines = async (query: string) => (await client.query(query)).rows.map(({ line }) => String(line))
  try {
    const tables = await lines(
      "SELECT c.relname AS line FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1"
    )
    const text: Array<string> = []
    for (const table of [...new Set(tables.map((name) => name.replaceAll(partition, "_<part>")))]) {
      const sample = tables.find((name) => name.replaceAll(partition, "_<part>") === table) ?? table
      const oid = `'${sample}'::regclass`
      text.push(
        table,
        ...(await lines(`
          SELECT format('  %s %s%s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation THEN ' COLLATE ' || quote_ident(l.collname) ELSE '' END,
            CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END,
            CASE WHEN a.attidentity <> '' THEN ' IDENTITY' ELSE '' END,
            coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')) AS line
          FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation l ON l.oid = a.attcollation
            LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
          WHERE a.attrelid = ${oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`)),
        ...(await lines(
          `SELECT '  ' || pg_get_constraintdef(c.oid) AS line FROM pg_constraint c WHERE c.conrelid = ${oid} AND c.contype <> 'n' ORDER BY 1`
        )),
        ...(await lines(`SELECT '  ' || pg_get_indexdef(i.indexrelid) AS line FROM pg_index i WHERE i.indrelid = ${oid} ORDER BY 1`)),
        ...(await lines(
          `SELECT '  WITH ' || array_to_string(reloptions, ', ') AS line FROM pg_class WHERE oid = ${oid} AND reloptions IS NOT NULL`
        )),
        ...(await lines(`SELECT '  PARTITION BY ' || pg_get_partkeydef(${oid}) AS line WHERE pg_get_partkeydef(${oid}) IS NOT NULL`)),
        ...(await lines(
          `SELECT '  ' || pg_get_triggerdef(t.oid) AS line FROM pg_trigger t WHERE t.tgrelid = ${oid} AND NOT t.tgisinternal ORDER BY 1`
        ))
      )
    }
    text.push(
      ...(await lines(`SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ') RETURNS ' || pg_get_function_result(p.oid) AS line
        FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace ORDER BY 1`))
    )
    expect(text.length).toBeGreaterThan(100)
    golden("schema.txt", `${text.map((line) => line.replaceAll(partition, "_<part>")).join("\n")}\n`)
  } finally {
    await client.end()
  }
})
