/** The table of a statement's lines. */
import { CircleAlert, FileCheck2 } from "lucide-react"
import type { ReactNode } from "react"
import type { Statement, StatementLine } from "../../../client/index.ts"
import { assetParts, networkName } from "../chains.ts"
import { listOf } from "../list.ts"
import { Amount, isZero, placesOf, useAllDigits } from "../parts/Amount.tsx"
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

/** Marks an amount that no transaction explains. */
export const Mark = () => (
  <span className="mark" title="Not explained by transactions">
    <CircleAlert role="img" aria-label="Not explained by transactions" size={14} />
  </span>
)

/** Whether any of the lines has an amount that no transaction explains. */
export const isUnexplained = (lines: Statement["assets"]): boolean => lines.some(({ other }) => !isZero(other))

/**
 * The lines of a statement, or of several that were added up. `empty` says that there are none, `children` choose among them, and
 * `where` says where to look for an unexplained amount.
 */
export const StatementLines = ({
  children,
  empty,
  lines,
  where
}: {
  readonly lines: ReadonlyArray<StatementLine>
  readonly empty: string
  readonly children?: ReactNode
  readonly where?: string
}) => {
  const [everyDigit, setEveryDigit] = useAllDigits()
  return (
    <>
      <div className="toolbar">
        <Toggle label="Every digit" checked={everyDigit} onChecked={setEveryDigit} />
        {children}
      </div>
      <Table
        list={listOf(lines, ({ asset }) => asset)}
        label="Lines of the statement"
        empty={<Empty icon={FileCheck2} title={empty} />}
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
                <span>
                  {field === "other" && !isZero(line.other) ? <Mark /> : null}{" "}
                  <Amount
                    amount={line[field].replace(/^-/, "")}
                    places={places}
                    {...(line[field].startsWith("-") ? { sign: "−" as const } : {})}
                  />
                </span>
              )
            }
          }),
          { label: "Transactions", align: "right", from: "medium", cell: ({ transactionCount }) => transactionCount }
        ]}
        foot={() =>
          !isUnexplained(lines) ? null : (
            <p className="hint">
              <Mark /> Other is the change of a balance that no transaction and no fee explains, such as an adjustment, or a staking reward
              that was recorded as a balance only. {where}
            </p>
          )
        }
      />
    </>
  )
}
