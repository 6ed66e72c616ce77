/** The table of a statement's lines. */
import { FileCheck2 } from "lucide-react"
import type { StatementLine } from "../../../client/index.ts"
import { assetParts, networkName } from "../chains.ts"
import { listOf } from "../list.ts"
import { Amount, placesOf, useAllDigits } from "../parts/Amount.tsx"
import { Toggle } from "../parts/Field.tsx"
import { Empty } from "../parts/States.tsx"
import { type Column, Table } from "../parts/Table.tsx"

const amounts = [
  ["Opening", "opening"],
  ["In", "inbound"],
  ["Out", "outbound"],
  ["Fees", "fees"],
  ["Other", "other"],
  ["Closing", "closing"]
] as const

/** The lines of a statement, or of several that were added up. */
export const StatementLines = ({ lines }: { readonly lines: ReadonlyArray<StatementLine> }) => {
  const [everyDigit, setEveryDigit] = useAllDigits()
  return (
    <>
      <div className="toolbar">
        <Toggle label="Every digit" checked={everyDigit} onChecked={setEveryDigit} />
      </div>
      <Table
        list={listOf(lines, ({ asset }) => asset)}
        label="Lines of the statement"
        empty={
          <Empty icon={FileCheck2} title="No balances and no transactions">
            <p>An empty day is sealed, too.</p>
          </Empty>
        }
        columns={[
          {
            label: "Asset",
            heads: true,
            cell: ({ asset, symbol }) => (
              <span title={asset}>
                <b>{symbol}</b> <span className="under">{networkName(assetParts(asset).network)}</span>
              </span>
            )
          },
          ...amounts.map(([label, field]): Column<StatementLine> => {
            const places = placesOf(
              lines.map((line) => line[field]),
              everyDigit
            )
            return {
              label,
              align: "right",
              cell: (line) => (
                <Amount
                  amount={line[field].replace(/^-/, "")}
                  places={places}
                  {...(line[field].startsWith("-") ? { sign: "−" as const } : {})}
                />
              )
            }
          }),
          { label: "Transactions", align: "right", from: "medium", cell: ({ transactionCount }) => transactionCount }
        ]}
      />
    </>
  )
}
