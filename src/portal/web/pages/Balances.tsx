/** A vault's balances, now or at a given time. */
import { Coins } from "lucide-react"
import { useState } from "react"
import { Link } from "react-router"
import { assetParts, tokenType } from "../chains.ts"
import { useList } from "../list.ts"
import { Amount, compareAmounts, isZero, placesOf, useAllDigits } from "../parts/Amount.tsx"
import { Network, OnChain } from "../parts/Chain.tsx"
import { Export } from "../parts/Export.tsx"
import { TextField, Toggle } from "../parts/Field.tsx"
import { Filters, useFilters, utc } from "../parts/Filters.tsx"
import { Empty } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"

/** Path of the history of an asset's balance. */
const historyOf = (vaultId: string, asset: string) => `/vaults/${vaultId}/balance-history?asset=${encodeURIComponent(asset)}`

export const Balances = ({ vaultId }: { readonly vaultId: string }) => {
  const [everyDigit, setEveryDigit] = useAllDigits()
  const [hideZero, setHideZero] = useState(false)
  const filters = useFilters(["at"])
  const at = utc(filters.values.at)
  const loaded = useList(
    `/v1/vaults/${vaultId}/balances`,
    { at },
    { limit: 100, ...(at === "" ? { every: 15_000 } : {}), keyOf: ({ asset }) => asset }
  )
  const zeroLast = loaded.rows?.toSorted((a, b) => Number(isZero(a.amount)) - Number(isZero(b.amount)))
  const list = { ...loaded, rows: zeroLast }
  const places = placesOf(list.rows?.map(({ amount }) => amount) ?? [], everyDigit)
  return (
    <>
      <Filters filters={filters}>
        <TextField label="Balances at" type="datetime-local" value={filters.values.at} onValue={(value) => filters.set({ at: value })} />
      </Filters>
      <div className="toolbar">
        <Toggle label="Every digit" checked={everyDigit} onChecked={setEveryDigit} />
        <Toggle label="Hide zero balances" checked={hideZero} onChecked={setHideZero} />
        <span className="spring" />
        <Export name={at === "" ? "balances" : `balances-at-${at.slice(0, 16).replace(":", "")}`} source={list.source} />
      </div>
      <Table
        list={list}
        label="Balances"
        only={({ amount }) => !hideZero || !isZero(amount)}
        empty={<Empty icon={Coins} title={at === "" ? "No balances" : "No balances at this time"} />}
        columns={[
          {
            label: "Asset",
            heads: true,
            cell: ({ asset, symbol }) => (
              <Link className="name" to={historyOf(vaultId, asset)} title="Balance over time">
                {symbol}
              </Link>
            ),
            compare: (a, b) => a.symbol.localeCompare(b.symbol)
          },
          { label: "Network", cell: ({ network }) => <Network name={network} />, compare: (a, b) => a.network.localeCompare(b.network) },
          { label: "Token", cell: ({ asset }) => <Token asset={asset} /> },
          { label: "As of", from: "medium", cell: ({ asOf }) => <Time at={asOf} />, compare: (a, b) => (a.asOf < b.asOf ? -1 : 1) },
          {
            label: "Balance",
            align: "right",
            cell: ({ amount, symbol }) => <Amount amount={amount} symbol={symbol} places={places} />,
            compare: (a, b) => compareAmounts(a.amount, b.amount)
          }
        ]}
      />
    </>
  )
}

const Token = ({ asset }: { readonly asset: string }) => {
  const { address, network, type } = assetParts(asset)
  return (
    <span className="token">
      {tokenType(type)} {address === undefined ? null : <OnChain is="address" network={network} text={address} />}
    </span>
  )
}
