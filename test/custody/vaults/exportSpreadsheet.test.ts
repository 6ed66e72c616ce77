/** A CSV export in a real spreadsheet: LibreOffice opens it, saves it as its own file and writes it back. C-6. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { useApi } from "../../support/api.ts"
import { asset, smallest, transaction } from "../../support/records.ts"

const spreadsheet = Bun.which("soffice")
const BIG = "ethereum/erc20:0x0000000000000000000000000000000000000078"
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-spreadsheet-"))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Amounts that floating point would round, and that spreadsheets would read as dates, exponents or without their zeros. */
const amounts = [
  "0",
  "0.000000000000000001",
  "123456789012345678901234567890.123456789012345678",
  "9".repeat(60),
  `1${"0".repeat(59)}`,
  "1.1",
  "0.1",
  "12345678.9",
  "9007199254740993",
  "100000000000000000000"
]

/** Converts a file, without a profile that another process may hold. Returns the new file. */
const convert = async (file: string, to: "ods" | "xlsx" | "csv"): Promise<string> => {
  const child = Bun.spawn(
    [
      spreadsheet ?? "",
      `-env:UserInstallation=file://${folder}/profile`,
      "--headless",
      "--convert-to",
      // Comma, double quote, UTF-8; every cell as its text.
      to === "csv" ? "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true" : to,
      "--outdir",
      path.join(folder, to),
      file
    ],
    { stdout: "pipe", stderr: "pipe" }
  )
  const [said, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(`soffice ended with ${code}: ${said}`)
  return path.join(folder, to, `${path.basename(file, path.extname(file))}.${to}`)
}

const rowsOf = (text: string) =>
  text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => line !== "")
    .map((line) => line.split(","))

describe.skipIf(spreadsheet === null)("an export in LibreOffice", () => {
  const app = useApi()
  let exported = ""

  beforeAll(async () => {
    await app.feed(
      [
        ...smallest(),
        asset(BIG, { decimals: 0, symbol: "BIG" }),
        ...amounts.map((amount, index) =>
          transaction("vault_a", index, {
            amount,
            asset: amount.includes(".") ? "ethereum/native" : BIG,
            timestamp: new Date(Date.UTC(2024, 0, 1, 0, 0, index, index)).toISOString()
          })
        )
      ],
      { "x-record-events": "none" }
    )
    exported = (await app.get("/v1/vaults/vault_a/transactions/export?format=csv", (await app.key("user_a")).secret)).text
    fs.writeFileSync(path.join(folder, "transactions.csv"), exported)
  })

  for (const format of ["ods", "xlsx"] as const) {
    test(`keeps every digit of every amount as ${format}, and every other cell as it is`, async () => {
      const back = fs.readFileSync(await convert(await convert(path.join(folder, "transactions.csv"), format), "csv"), "utf8")
      const [head, ...rows] = rowsOf(back)
      const [expectedHead, ...expected] = rowsOf(exported)
      expect(head).toEqual(expectedHead ?? [])
      expect(rows).toEqual(expected)
      expect(rows.map((row) => row[5]).sort()).toEqual(amounts.map((amount) => `'${amount}`).sort())
    })
  }
})
