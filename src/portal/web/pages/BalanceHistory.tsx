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
import { Amount, isZero, placesOf, useAllDigits } from "../parts/Amount.tsx"
import type { Step } from "../parts/BalanceChart.tsx"
import { Export } from "../parts/Export.tsx"
import { Toggle } from "../parts/Field.tsx"
import { Page } from "../parts/Page.tsx"
import { Segments } from "../parts/Segments.tsx"
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
type Span = (typeof spans)[number][0]

/** Records per request, and most records in the chart. */
const PAGE = 500,
  MOST = 2_000

/** The path of a balance's history, with the asset in the query. */
type History = `/v1/vaults/${string}/balance-history?${string}`

/** What a chart shows. */
interface Drawing {
  readonly span: Span
  /** Oldest first, from the balance at the beginning, or the first that is not zero, to now. */
  readonly steps: ReadonlyArray<Step>
  /** Whether older ones are left out. */
  readonly cut: boolean
}

/** Ends the requests of a chart that nobody looks at any more. */
interface Ending {
  readonly signal: AbortSignal
}

const drawingOf = async (path: History, span: Span, ending: Ending): Promise<Drawing> => {
  const from = span === "all" ? undefined : new Date(Date.now() - Number(span) * DAY).toISOString()
  const found: Array<BalanceRecord> = []
  let cursor: string | null = ""
  while (cursor !== null && found.length < MOST) {
    const range = `${from === undefined ? "" : `&occurredAfter=${from}`}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
    const page: PageOf<BalanceRecord> = await getPage(`${path}&limit=${PAGE}${range}`, ending)
    found.push(...page.data)
    cursor = page.pagination.nextCursor
  }
  const [before] = from === undefined || cursor !== null ? [] : (await getPage(`${path}&limit=1&occurredBefore=${from}`, ending)).data
  const steps: Array<Step> = before === undefined || from === undefined ? [] : [{ at: from, amount: before.amount }]
  for (const { amount, asOf } of found.reverse()) {
    // Of several records with the same time, the last recorded counts.
    if (steps.at(-1)?.at === asOf) steps.pop()
    steps.push({ at: asOf, amount })
  }
  steps.splice(
    0,
    steps.findIndex(({ amount }) => !isZero(amount))
  )
  const [last, now] = [steps.at(-1), new Date().toISOString()]
  return { span, steps: last === undefined || last.at >= now ? steps : [...steps, { at: now, amount: last.amount }], cut: cursor !== null }
}

/** Whether a chart shows a change of the balance before its last tenth, which is too narrow for one. */
const isTelling = ({ steps: [first, ...later] }: Drawing): boolean => {
  const [change, last] = [later.find(({ amount }) => amount !== first?.amount), later.at(-1)]
  if (first === undefined || change === undefined || last === undefined) return false
  const from = Date.parse(first.at)
  return Date.parse(change.at) - from < (Date.parse(last.at) - from) * 0.9
}

/** What a chart opens with: the last year or 30 days if the balance changed in it, otherwise everything. */
const opening = async (path: History, ending: Ending): Promise<Drawing> => {
  for (const span of ["365", "30"] as const) {
    const found = await drawingOf(path, span, ending)
    if (isTelling(found)) return found
  }
  return drawingOf(path, "all", ending)
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
      <Chart path={`/v1/vaults/${id}/balance-history?asset=${encodeURIComponent(asset)}`} symbol={symbol} />
      <Records vaultId={id} asset={asset} symbol={symbol} />
    </Page>
  )
}

const Chart = ({ path, symbol }: { readonly path: History; readonly symbol: string }) => {
  const [chosen, setChosen] = useState<Span>()
  const { data, error, refetch } = useQuery({
    queryKey: [path, "steps", chosen],
    queryFn: ({ signal }) => (chosen === undefined ? opening(path, { signal }) : drawingOf(path, chosen, { signal }))
  })
  const balances = useMemo(() => ({ steps: data?.steps ?? [], symbol }), [data, symbol])
  return (
    <>
      <div className="toolbar">
        <Segments label="Time span" choices={spans} chosen={chosen ?? data?.span} onChosen={setChosen} />
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
