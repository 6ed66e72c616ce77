/** A vault's daily statements, each verified in the browser, and its whole chain on demand. */
import { FileCheck2 } from "lucide-react"
import { useState } from "react"
import { Link } from "react-router"
import type { Page, Statement, Vault } from "../../../client/index.ts"
import { type ChainVerification, verifyStatements } from "../../../client/statements.ts"
import { fileLabel } from "../../../values/fileLabel.ts"
import { get, getPage, messageOf } from "../api.ts"
import { useOne } from "../data.ts"
import { dayAfter, lastDay, monthsOf } from "../days.ts"
import { useList } from "../list.ts"
import { Button } from "../parts/Button.tsx"
import { Id } from "../parts/Copy.tsx"
import { useFilters } from "../parts/Filters.tsx"
import { Section } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { readKeys, Verified } from "../parts/Verified.tsx"
import { isUnexplained, Mark } from "./StatementLines.tsx"
import { StatementMonth } from "./StatementMonth.tsx"

async function* listStatements(vaultId: string) {
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`
    const page: Page<Statement> = await getPage(`/v1/vaults/${vaultId}/statements?limit=100${query}`)
    yield* page.data
    cursor = page.pagination.nextCursor
  }
}
const reader = {
  getSigningKeys: readKeys,
  listStatements,
  getStatement: (vaultId: string, date: string, { revision }: { readonly revision: number }) =>
    get(`/v1/vaults/${vaultId}/statements/${date}?revision=${revision}`)
}

export const Statements = ({ vault }: { readonly vault: Vault }) => {
  const { data: days, error, refetch } = useOne(`/vaults/${vault.id}/statement-days`, { every: 60_000 })
  if (days === undefined) return error === null ? <Loading /> : <Failure error={error} retry={() => void refetch()} />
  return days.first === days.next ? (
    <Empty icon={FileCheck2} title="No statements yet">
      <p>{`This vault's statements begin at ${days.first}. Each UTC day gets one, a few hours after it ends.`}</p>
    </Empty>
  ) : (
    <Months vault={vault} oldest={days.first} newest={dayAfter(days.next, -1)} />
  )
}

/** A month, added up and by day. `oldest` and `newest`: the vault's first and last statement. */
const Months = ({ newest, oldest, vault: { id, label } }: { readonly vault: Vault; readonly oldest: string; readonly newest: string }) => {
  const { set, values } = useFilters(["month"])
  const months = monthsOf(oldest, newest)
  const month = months.includes(values.month) ? values.month : newest.slice(0, 7)
  const list = useList(
    `/v1/vaults/${id}/statements`,
    { from: `${month}-01`, to: lastDay(month) },
    { every: 60_000, limit: 31, keyOf: ({ date, revision }) => `${date} ${revision}` }
  )
  return (
    <>
      <StatementMonth
        vaultId={id}
        fileLabel={fileLabel(label) || id}
        newest={newest}
        month={month}
        months={months}
        setMonth={(month) => set({ month })}
      />
      <div className="toolbar">
        <Chain vaultId={id} />
      </div>
      <Section title={`Days of ${month}`}>
        <Table
          list={list}
          label="Statements"
          empty={<Empty icon={FileCheck2} title="No statements in this month" />}
          columns={[
            {
              label: "Day (UTC)",
              heads: true,
              cell: ({ assets, date }) => (
                <span>
                  <Link className="name" to={`/vaults/${id}/statements/${date}`}>
                    {date}
                  </Link>{" "}
                  {isUnexplained(assets) ? <Mark /> : null}
                </span>
              )
            },
            { label: "Assets", align: "right", cell: ({ assets }) => assets.length },
            {
              label: "Transactions",
              align: "right",
              cell: ({ assets }) => assets.reduce((sum, { transactionCount }) => sum + transactionCount, 0)
            },
            { label: "Revision", align: "right", cell: ({ revision }) => revision },
            { label: "Sealed", from: "medium", cell: ({ sealedAt }) => <Time at={sealedAt} /> },
            { label: "Hash", from: "wide", cell: ({ hash }) => <Id text={hash} what="Hash" /> },
            { label: "Signature", cell: (statement) => <Verified statement={statement} /> }
          ]}
        />
      </Section>
    </>
  )
}

const saidOfChain = (found: ChainVerification): string =>
  found.valid
    ? `Verified: ${found.statements} ${found.statements === 1 ? "statement" : "statements"} in one unbroken chain.`
    : `The chain does not verify: ${found.difference}.`

/** Verifies every statement of the vault, with all revisions. */
const Chain = ({ vaultId }: { readonly vaultId: string }) => {
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState("")
  const verify = async () => {
    setBusy(true)
    setSaid("")
    setSaid(await verifyStatements(reader, vaultId).then(saidOfChain, messageOf))
    setBusy(false)
  }
  return (
    <>
      <Button busy={busy} onClick={() => void verify()}>
        Verify the whole chain
      </Button>
      <p className="under" role="status">
        {busy ? "Reading every statement …" : said}
      </p>
    </>
  )
}
