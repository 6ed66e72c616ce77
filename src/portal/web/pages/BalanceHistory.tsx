/** The history of a vault's balance of one asset: a chart, and every record. */
import { useQuery } from "@tanstack/react-query"
import { ChartLine } from "lucide-react"
import { lazy, Suspense, useMemo, useState } from "react"
import { useParams, useSearchParams } from "react-router"
import type { BalanceRecord, Page as PageOf } from "../../../client/index.ts"
import { getPage } from "../api.ts"
import { assetParts, networkName, tokenType } from "../chains.ts"
import { useOne, useSymbols } from "../data.ts"
import { useList } from "../list.ts"
import { Amount, placesOf, useAllDigits } from "../parts/Amount.tsx"
import type { Step } from "../parts/BalanceChart.tsx"
import { Export } from "../parts/Export.tsx"
import { Toggle } from "../parts/Field.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"

const BalanceChart = lazy(() => import("../parts/BalanceChart.tsx"))

const DAY = 86_400_000
const spans = [
  ["30", "30 days"],
  ["365", "1 year"],
  ["all", "All"]
] as const

/** Records per request, and most records in the chart. */
const PAGE = 500,
  MOST = 2_000

/** The path of a balance's history, with the asset in the query. */
type History = `/v1/vaults/${string}/balance-history?${string}`

/** The steps of the balance in a period, oldest first, from the balance at its beginning to now; and whether older ones are left out. */
const stepsOf = async (path: History, days: string): Promise<{ readonly steps: ReadonlyArray<Step>; readonly cut: boolean }> => {
  const from = days === "all" ? undefined : new Date(Date.now() - Number(days) * DAY).toISOString()
  const found: Array<BalanceRecord> = []
  let cursor: string | null = ""
  while (cursor !== null && found.length < MOST) {
    const range = `${from === undefined ? "" : `&occurredAfter=${from}`}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
    const page: PageOf<BalanceRecord> = await getPage(`${path}&limit=${PAGE}${range}`)
    found.push(...page.data)
    cursor = page.pagination.nextCursor
  }
  const [before] = from === undefined || cursor !== null ? [] : (await getPage(`${path}&limit=1&occurredBefore=${from}`)).data
  const steps: Array<Step> = before === undefined || from === undefined ? [] : [{ at: from, amount: before.amount }]
  for (const { amount, asOf } of found.reverse()) {
    // Of several records with the same time, the last recorded counts.
    if (steps.at(-1)?.at === asOf) steps.pop()
    steps.push({ at: asOf, amount })
  }
  const [last, now] = [steps.at(-1), new Date().toISOString()]
  return { steps: last === undefined || last.at >= now ? steps : [...steps, { at: now, amount: last.amount }], cut: cursor !== null }
}

export const BalanceHistoryPage = () => {
  const { id = "" } = useParams()
  const [search] = useSearchParams()
  const asset = search.get("asset") ?? ""
  const vault = useOne(`/v1/vaults/${id}`)
  const symbol = useSymbols([asset])(asset)
  const { address, network, type } = assetParts(asset)
  return (
    <Page
      title={`${symbol} over time`}
      back={[`/vaults/${id}`, vault.data?.label ?? "Vault"]}
      lead={
        <>
          {networkName(network)}, {tokenType(type)} {address === undefined ? null : <code>{address}</code>}
        </>
      }
    >
      <Drawing path={`/v1/vaults/${id}/balance-history?asset=${encodeURIComponent(asset)}`} symbol={symbol} />
      <Records vaultId={id} asset={asset} symbol={symbol} />
    </Page>
  )
}

const Drawing = ({ path, symbol }: { readonly path: History; readonly symbol: string }) => {
  const [span, setSpan] = useState("365")
  const { data, error, refetch } = useQuery({ queryKey: [path, "steps", span], queryFn: () => stepsOf(path, span) })
  const balances = useMemo(() => ({ steps: data?.steps ?? [], symbol }), [data, symbol])
  return (
    <>
      <div className="toolbar">
        <div className="segments" role="radiogroup" aria-label="Time span">
          {spans.map(([value, label]) => (
            <label key={value}>
              <input type="radio" name="span" value={value} checked={span === value} onChange={() => setSpan(value)} />
              <span>{label}</span>
            </label>
          ))}
        </div>
      </div>
      {data === undefined ? (
        error === null ? (
          <Loading lines={3} />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : data.steps.length < 2 ? (
        <p className="hint">There are no records in this period.</p>
      ) : (
        <Suspense fallback={<Loading lines={3} />}>
          <BalanceChart balances={balances} />
        </Suspense>
      )}
      {data?.cut === true ? (
        <p className="hint">The chart shows the newest {MOST.toLocaleString()} records. The table has all of them.</p>
      ) : null}
    </>
  )
}

const Records = ({ asset, symbol, vaultId }: { readonly vaultId: string; readonly asset: string; readonly symbol: string }) => {
  const [everyDigit, setEveryDigit] = useAllDigits()
  const list = useList(
    `/v1/vaults/${vaultId}/balance-history`,
    { asset },
    { keyOf: ({ amount, asOf, recordedAt }) => `${asOf} ${recordedAt} ${amount}` }
  )
  const places = placesOf(list.rows?.map(({ amount }) => amount) ?? [], everyDigit)
  return (
    <>
      <div className="toolbar">
        <Toggle label="Every digit" checked={everyDigit} onChecked={setEveryDigit} />
        <span className="spring" />
        <Export name="balance-history" source={list.source} />
      </div>
      <Table
        list={list}
        label="Records of the balance"
        empty={<Empty icon={ChartLine} title="No records of this asset" />}
        columns={[
          { label: "As of", heads: true, cell: ({ asOf }) => <Time at={asOf} /> },
          { label: "Recorded", cell: ({ recordedAt }) => <Time at={recordedAt} /> },
          {
            label: "Balance",
            align: "right",
            cell: ({ amount }) => <Amount amount={amount} symbol={symbol} places={places} />
          }
        ]}
      />
    </>
  )
}
