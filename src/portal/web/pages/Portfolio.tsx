/** What all visible vaults hold together, by asset, and their latest transactions: on the home page. C-11. */
import { useState } from "react"
import { Link } from "react-router"
import type { PortfolioBalance } from "../../../client/index.ts"
import { assetParts, networkName, short } from "../chains.ts"
import { useNames, useOne, useSymbols } from "../data.ts"
import { useFew } from "../list.ts"
import { Amount, isZero } from "../parts/Amount.tsx"
import { Button } from "../parts/Button.tsx"
import { EventSummary } from "../parts/EventSummary.tsx"
import { ExportFile } from "../parts/Export.tsx"
import { TextField } from "../parts/Field.tsx"
import { Section } from "../parts/Page.tsx"
import { Segments } from "../parts/Segments.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { State } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"

const SHOWN = 8

const isToken = ({ asset }: PortfolioBalance) => Number(assetParts(asset).type !== "native")
/** Native assets first, then those in most vaults: amounts of different assets cannot be compared. */
const byWeight = (a: PortfolioBalance, b: PortfolioBalance) => isToken(a) - isToken(b) || (b.vaultCount ?? 0) - (a.vaultCount ?? 0)

/** Balances of all vaults, summed by asset, without those that are zero. */
export const Holdings = () => {
  const [all, setAll] = useState(false)
  const { data, error, refetch } = useOne("/v1/balances?sumBy=asset&limit=500", { every: 30_000 })
  const held = data?.data.filter(({ amount }) => !isZero(amount)).toSorted(byWeight)
  const isCut = data !== undefined && data.pagination.nextCursor !== null
  if (held?.length === 0 && !isCut) return null
  return (
    <Section title="Balances" lead="All vaults that you can see, by asset." actions={<Link to="/vaults">View all</Link>}>
      {held === undefined ? (
        error === null ? (
          <Loading lines={3} />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : (
        <ul className="rows holdings" aria-label="Balances">
          {(all ? held : held.slice(0, SHOWN)).map((total) => (
            <li key={total.asset}>
              <Holding total={total} />
            </li>
          ))}
        </ul>
      )}
      {held === undefined || all || held.length <= SHOWN ? null : (
        <p className="more">
          <Button onClick={() => setAll(true)}>Show all {held.length} assets</Button>
        </p>
      )}
      {isCut ? <p className="hint">There are more assets. The API lists all of them.</p> : null}
    </Section>
  )
}

/** An asset's total, which opens to the balance of each vault. */
const Holding = ({ total: { amount, asset, symbol, vaultCount } }: { readonly total: PortfolioBalance }) => {
  const [open, setOpen] = useState(false)
  const { address, network } = assetParts(asset)
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <b>{symbol}</b>
        <span className="under">
          {networkName(network)}
          {address === undefined ? null : (
            <>
              {" "}
              <code title={address}>{short(address, 6, 4)}</code>
            </>
          )}
          , {vaultCount === 1 ? "1 vault" : `${vaultCount} vaults`}
        </span>
        <Amount amount={amount} />
      </summary>
      {open ? <Holders asset={asset} /> : null}
    </details>
  )
}

/** Vaults that are listed for an asset; its total covers all of them. */
const HOLDERS = 100

const Holders = ({ asset }: { readonly asset: string }) => {
  const nameOf = useNames()
  const { data, error, refetch } = useOne(`/v1/balances?asset=${encodeURIComponent(asset)}&limit=${HOLDERS}`)
  if (data === undefined) return error === null ? <Loading lines={1} /> : <Failure error={error} retry={() => void refetch()} />
  return (
    <ul aria-label="Vaults">
      {data.data.map(({ amount, asOf, vaultId = "" }) =>
        isZero(amount) ? null : (
          <li key={vaultId}>
            <Link to={`/vaults/${vaultId}/balance-history?asset=${encodeURIComponent(asset)}`}>{nameOf(vaultId)}</Link>
            <span className="under">{asOf === undefined ? null : <Time at={asOf} as="ago" />}</span>
            <Amount amount={amount} />
          </li>
        )
      )}
      {data.pagination.nextCursor === null ? null : <li className="under">The first {HOLDERS} vaults.</li>}
    </ul>
  )
}

/** The latest transactions of all vaults, whatever their status. */
export const Movements = () => {
  const { data } = useFew("/v1/transactions", SHOWN, 10_000)
  const symbolOf = useSymbols(data?.map(({ asset }) => asset) ?? [])
  if (data === undefined || data.length === 0) return null
  return (
    <Section title="Latest movements" actions={<ExportAll />}>
      <ul className="rows movements" aria-label="Latest movements">
        {data.map((transaction) => (
          <li key={`${transaction.vaultId} ${transaction.id}`}>
            <Link to={`/vaults/${transaction.vaultId}/transactions/${transaction.id}`}>
              {transaction.direction === "inbound" ? "Received" : "Sent"}
            </Link>
            <EventSummary data={{ transaction, vaultId: transaction.vaultId }} symbolOf={symbolOf} />
            <State value={transaction.status} />
            <span className="under when">
              <Time at={transaction.timestamp} as="ago" />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** Years to choose from, beside any period. */
const YEARS = 3

/** Exports the transactions of all vaults in a period of UTC days. */
const ExportAll = () => {
  const [{ from, to }, setPeriod] = useState({ from: "", to: "" })
  const present = new Date().getUTCFullYear()
  const years = Array.from({ length: YEARS }, (_, ago) => `${present - ago}`)
  const ofYear = (year: string) => (year === "" ? { from: "", to: "" } : { from: `${year}-01-01`, to: `${year}-12-31` })
  const chosen = ["", ...years].find((year) => ofYear(year).from === from && ofYear(year).to === to)
  const isBackward = from !== "" && to !== "" && from > to
  const query = new URLSearchParams({
    ...(from === "" ? {} : { occurredAfter: `${from}T00:00:00.000Z` }),
    ...(to === "" ? {} : { occurredBefore: `${to}T23:59:59.999Z` })
  })
  const period = `${from === "" ? "" : ` from the beginning of ${from}`}${to === "" ? "" : ` to the end of ${to}`}`
  return (
    <ExportFile
      source={isBackward ? undefined : `/v1/transactions/export?${query}${query.size === 0 ? "" : "&"}`}
      lead={`All transactions${period === "" ? "" : `${period}, UTC,`} of all vaults that you can see, whatever their status, newest first.`}
    >
      <Segments
        label="Year"
        choices={[["", "All"], ...years.map((year) => [year, year] as const)]}
        chosen={chosen}
        onChosen={(year) => setPeriod(ofYear(year))}
      />
      <div className="filters">
        <TextField label="From" type="date" value={from} onValue={(from) => setPeriod({ from, to })} />
        <TextField
          label="To"
          type="date"
          value={to}
          error={isBackward ? "Must not be before From." : undefined}
          onValue={(to) => setPeriod({ from, to })}
        />
      </div>
    </ExportFile>
  )
}
