/** A vault's transactions, with the API's filters, kept in the URL. */
import { ArrowDownLeft, ArrowUpRight, History } from "lucide-react"
import { Link } from "react-router"
import type { Transaction } from "../../../client/index.ts"
import { assetParts, networkName, short } from "../chains.ts"
import { useSymbols } from "../data.ts"
import { useFew, useList } from "../list.ts"
import { Amount, grouped, placesOf, sum, useAllDigits } from "../parts/Amount.tsx"
import { Network, OnChain } from "../parts/Chain.tsx"
import { ExportFile } from "../parts/Export.tsx"
import { Select, TextField, Toggle } from "../parts/Field.tsx"
import { Filters, useFilters, utc, utcEnd } from "../parts/Filters.tsx"
import { Empty } from "../parts/States.tsx"
import { State, wordOf } from "../parts/Status.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"

const statuses = ["pending", "confirmed", "failed", "replaced", "dropped"]
const names = ["direction", "status", "network", "asset", "hash", "after", "before"] as const

export const Transactions = ({ networks, vaultId }: { readonly vaultId: string; readonly networks: ReadonlyArray<string> }) => {
  const [everyDigit, setEveryDigit] = useAllDigits()
  const filters = useFilters(names)
  const { after, asset, before, direction, hash, network, status } = filters.values
  const list = useList(
    `/v1/vaults/${vaultId}/transactions`,
    { direction, status, network, asset, hash: hash.trim(), occurredAfter: utc(after), occurredBefore: utcEnd(before) },
    { every: 10_000 }
  )
  const file = list.source.replace("/transactions?", "/transactions/export?")
  const moved = list.rows?.flatMap(({ asset, fee }) => [asset, ...(fee === null ? [] : [fee.asset])]) ?? []
  const assets = useAssets(vaultId, moved, network, asset)
  const symbolOf = useSymbols([...moved, ...assets])
  const places = placesOf(list.rows?.map(({ amount }) => amount) ?? [], everyDigit)
  return (
    <>
      <Filters filters={filters}>
        <Select label="Direction" value={direction} onValue={(value) => filters.set({ direction: value })}>
          <option value="">Any</option>
          <option value="inbound">Received</option>
          <option value="outbound">Sent</option>
        </Select>
        <Select label="Status" value={status} onValue={(value) => filters.set({ status: value })}>
          <option value="">Any</option>
          {statuses.map((one) => (
            <option key={one} value={one}>
              {wordOf(one)}
            </option>
          ))}
        </Select>
        <Select label="Network" value={network} onValue={(value) => filters.set({ network: value, asset: "" })}>
          <option value="">Any</option>
          {networks.map((one) => (
            <option key={one} value={one}>
              {networkName(one)}
            </option>
          ))}
        </Select>
        <Select label="Asset" value={asset} onValue={(value) => filters.set({ asset: value })}>
          <option value="">Any</option>
          {assets.map((one) => (
            <option key={one} value={one}>
              {assetName(one, symbolOf(one))}
            </option>
          ))}
        </Select>
        <TextField label="Hash" value={hash} spellCheck={false} onValue={(value) => filters.set({ hash: value })} />
        <TextField label="From" type="datetime-local" value={after} onValue={(value) => filters.set({ after: value })} />
        <TextField label="Until" type="datetime-local" value={before} onValue={(value) => filters.set({ before: value })} />
      </Filters>
      <div className="toolbar">
        <Toggle label="Every digit" checked={everyDigit} onChecked={setEveryDigit} />
        <span className="spring" />
        <ExportFile
          source={file}
          lead={
            filters.any
              ? "The transactions of this vault that match the filters, newest first."
              : "All transactions of this vault, newest first. With filters, the file has those that match."
          }
        />
      </div>
      <Table
        list={list}
        label="Transactions"
        empty={<Empty icon={History} title={filters.any ? "No transactions match these filters" : "No transactions yet"} />}
        columns={[
          {
            label: "Amount",
            align: "right",
            heads: true,
            cell: ({ amount, asset, direction, fee }) => (
              <>
                <Amount amount={amount} symbol={symbolOf(asset)} places={places} sign={direction === "inbound" ? "+" : "−"} />
                {fee === null ? null : (
                  <span className="under block">
                    Fee <Amount amount={fee.amount} symbol={symbolOf(fee.asset)} />
                  </span>
                )}
              </>
            )
          },
          {
            label: "Counterparty",
            cell: ({ direction, from, memo, network, to }) => (
              <>
                <span className="party">
                  {direction === "inbound" ? <ArrowDownLeft aria-hidden size={14} /> : <ArrowUpRight aria-hidden size={14} />}
                  {direction === "inbound" ? "From" : "To"}{" "}
                  <OnChain is="address" network={network} text={direction === "inbound" ? from : to} />
                </span>
                {memo === null ? null : (
                  <span className="under block memo" title={memo}>
                    Memo <bdi>{memo}</bdi>
                  </span>
                )}
              </>
            )
          },
          {
            label: "Hash",
            from: "medium",
            cell: ({ hash, network }) => <OnChain is="transaction" network={network} text={hash} />
          },
          { label: "Network", from: "wide", cell: ({ network }) => <Network name={network} /> },
          { label: "Status", cell: ({ status }) => <State value={status} /> },
          {
            label: "Time",
            cell: ({ blockNumber, id, timestamp }) => (
              <>
                <Link className="plainly" to={`/vaults/${vaultId}/transactions/${id}`} title="Details and history of this transaction">
                  <Time at={timestamp} />
                </Link>
                {blockNumber === null ? null : <span className="under block">Block {blockNumber}</span>}
              </>
            )
          }
        ]}
        foot={(rows) => (list.hasNextPage ? null : <Sums rows={rows} symbolOf={symbolOf} />)}
      />
    </>
  )
}

/** The assets to choose from, on the chosen network: those that the vault holds, and those of the rows and of the filter itself. */
const useAssets = (vaultId: string, moved: ReadonlyArray<string>, network: string, chosen: string): ReadonlyArray<string> => {
  const { data: held = [] } = useFew(`/v1/vaults/${vaultId}/balances`, 500)
  const all = new Set([...held.map(({ asset }) => asset), ...moved, ...(chosen === "" ? [] : [chosen])])
  return [...all].filter((asset) => network === "" || assetParts(asset).network === network).sort()
}

/** An asset's symbol, network and contract, since any token can have the symbol of another one. */
const assetName = (asset: string, symbol: string): string => {
  const { address, network } = assetParts(asset)
  return [symbol, networkName(network), ...(address === undefined ? [] : [short(address, 6, 4)])].join(" · ")
}

/** Exact sums of all confirmed transactions by asset, shown only if the whole list is loaded. */
const Sums = ({ rows, symbolOf }: { readonly rows: ReadonlyArray<Transaction>; readonly symbolOf: (asset: string) => string }) => {
  const confirmed = rows.filter(({ status }) => status === "confirmed")
  const assets = [...new Set(confirmed.map(({ asset }) => asset))].sort()
  if (assets.length === 0) return null
  const total = (asset: string, direction: string) =>
    grouped(sum(confirmed.flatMap((one) => (one.asset === asset && one.direction === direction ? [one.amount] : []))))
  return (
    <details className="sums">
      <summary>
        Sums of {confirmed.length} confirmed {confirmed.length === 1 ? "transaction" : "transactions"}
      </summary>
      <ul>
        {assets.map((asset) => (
          <li key={asset}>
            <b title={asset}>{symbolOf(asset)}</b> <span className="digits">+{total(asset, "inbound")}</span>{" "}
            <span className="digits">−{total(asset, "outbound")}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
