/** A month of a vault's statements, added up. C-10. */
import { useState } from "react"
import type { StatementSummary } from "../../../client/index.ts"
import { getText } from "../api.ts"
import { useOne } from "../data.ts"
import { SaveText } from "../parts/Export.tsx"
import { Select } from "../parts/Field.tsx"
import { Section } from "../parts/Page.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { StatementLines } from "./StatementLines.tsx"

/** Months that are offered. */
const MONTHS = 24

/** A month this many months before a day's, as `YYYY-MM`. */
const monthBefore = (day: string, months: number): string => {
  const at = new Date(`${day.slice(0, 7)}-01T00:00:00Z`)
  at.setUTCMonth(at.getUTCMonth() - months)
  return at.toISOString().slice(0, 7)
}

/** The last day of a month. */
const lastDay = (month: string): string =>
  new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).toISOString().slice(0, 10)

/** `newest`: the newest sealed day. A month that is not over yet ends with it. */
export const StatementMonth = ({ newest, vaultId }: { readonly vaultId: string; readonly newest: string }) => {
  const [month, setMonth] = useState(newest.slice(0, 7))
  const end = lastDay(month)
  const to = end < newest ? end : newest
  const query = `from=${month}-01&to=${to}`
  const found = useOne(`/v1/vaults/${vaultId}/statement-summary?${query}`)
  const name = `statements-${month}`
  return (
    <Section
      title="A month"
      lead={found.data === undefined ? undefined : periodOf(found.data)}
      actions={
        <>
          <Select label="Month" value={month} onValue={setMonth}>
            {Array.from({ length: MONTHS }, (_, months) => monthBefore(newest, months)).map((one) => (
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
        <StatementLines lines={found.data.assets} />
      )}
    </Section>
  )
}

const periodOf = ({ from, to }: StatementSummary): string => `From the beginning of ${from} to the end of ${to}, UTC.`
