/** A month of a vault's statements, added up. C-10. */
import { useState } from "react"
import type { StatementSummary } from "../../../client/index.ts"
import { getText } from "../api.ts"
import { useOne } from "../data.ts"
import { lastDay } from "../days.ts"
import { SaveText } from "../parts/Export.tsx"
import { Select, Toggle } from "../parts/Field.tsx"
import { Section } from "../parts/Page.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { StatementLines } from "./StatementLines.tsx"

/** `month` is one of `months`; one that is not over yet ends with the `newest` statement. `fileLabel` begins the names of files. */
export const StatementMonth = ({
  fileLabel,
  month,
  months,
  newest,
  setMonth,
  vaultId
}: {
  readonly vaultId: string
  readonly fileLabel: string
  readonly newest: string
  readonly month: string
  readonly months: ReadonlyArray<string>
  readonly setMonth: (month: string) => void
}) => {
  const [movedOnly, setMovedOnly] = useState(false)
  const end = lastDay(month)
  const query = `from=${month}-01&to=${end < newest ? end : newest}&movedOnly=${movedOnly}`
  const found = useOne(`/v1/vaults/${vaultId}/statement-summary?${query}`, { keep: true })
  const name = `${fileLabel}-statements-${month}`
  return (
    <Section
      title="A month"
      lead={found.data === undefined ? undefined : periodOf(found.data)}
      actions={
        <>
          <Select label="Month" value={month} onValue={setMonth}>
            {months.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </Select>
          <SaveText
            label="Sums as CSV"
            name={`${name}.csv`}
            type="text/csv"
            read={() => getText(`/v1/vaults/${vaultId}/statement-summary?${query}`, "text/csv")}
          />
          <SaveText
            label="Days as CSV"
            name={`${name}-days.csv`}
            type="text/csv"
            read={() => getText(`/v1/vaults/${vaultId}/statements?${query}`, "text/csv")}
          />
        </>
      }
    >
      {found.data === undefined ? (
        found.error === null ? (
          <Loading />
        ) : (
          <Failure error={found.error} retry={() => void found.refetch()} />
        )
      ) : (
        <StatementLines
          lines={found.data.assets}
          where="In the list below, this mark is beside the days with such a change."
          empty={movedOnly ? "Nothing moved in this month" : "No balances and no transactions in this month"}
        >
          <Toggle label="Moved only" checked={movedOnly} onChecked={setMovedOnly} />
        </StatementLines>
      )}
    </Section>
  )
}

const periodOf = ({ from, to }: StatementSummary): string => `From the beginning of ${from} to the end of ${to}, UTC.`
