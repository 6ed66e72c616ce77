/** One vault: balances, transactions and deposit addresses, to read. */
import { ArrowDownLeft, ArrowUpRight, Coins, History, QrCode } from "lucide-react"
import { Tabs } from "radix-ui"
import { Link, useParams, useSearchParams } from "react-router"
import type { Balance, DepositAddress, Transaction, Vault } from "../../../vaults/Vault.ts"
import { useList, useOne } from "../data.ts"
import { Id } from "../parts/Copy.tsx"
import { Page } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { State } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"

const tabs = [
  ["balances", "Balances"],
  ["transactions", "Transactions"],
  ["addresses", "Addresses"]
] as const

export const VaultPage = () => {
  const { id = "" } = useParams()
  const [search, setSearch] = useSearchParams()
  const found = useOne<Vault>(`/v1/vaults/${id}`)
  const balances = useList<Balance>(`/v1/vaults/${id}/balances`, {}, { limit: 100, every: 15_000 })
  const vault = found.data
  if (vault === undefined) {
    return (
      <Page title="Vault" back={["/vaults", "Vaults"]}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  const symbols = new Map(balances.rows?.map(({ asset, symbol }) => [asset, symbol]))
  return (
    <Page
      title={vault.label}
      back={["/vaults", "Vaults"]}
      lead={vault.networks.join(", ")}
      actions={
        <Link className="button plain" to={`/events?vaultId=${id}`}>
          Its events
        </Link>
      }
    >
      <p className="ids">
        <Id text={vault.id} what="Vault id" />
      </p>
      <Tabs.Root className="tabs" value={search.get("show") ?? "balances"} onValueChange={(show) => setSearch({ show }, { replace: true })}>
        <Tabs.List aria-label="What to show">
          {tabs.map(([value, label]) => (
            <Tabs.Trigger key={value} value={value}>
              {label}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        <Tabs.Content value="balances">
          <Rows
            list={balances}
            label="Balances"
            keyOf={({ asset }) => asset}
            empty={<Empty icon={Coins} title="The vault holds nothing" />}
            row={({ amount, asset, network, symbol }) => (
              <article className="row balance">
                <div className="what">
                  <h2>{symbol}</h2>
                  <p className="under">
                    {network} · <code>{asset.slice(network.length + 1)}</code>
                  </p>
                </div>
                <p className="amount">
                  {amount} <span>{symbol}</span>
                </p>
              </article>
            )}
          />
        </Tabs.Content>
        <Tabs.Content value="transactions">
          <Transactions vaultId={id} symbols={symbols} />
        </Tabs.Content>
        <Tabs.Content value="addresses">
          <Addresses vaultId={id} />
        </Tabs.Content>
      </Tabs.Root>
    </Page>
  )
}

const Transactions = ({ symbols, vaultId }: { readonly vaultId: string; readonly symbols: ReadonlyMap<string, string> }) => {
  const list = useList<Transaction>(`/v1/vaults/${vaultId}/transactions`, {}, { every: 10_000 })
  return (
    <Rows
      list={list}
      label="Transactions"
      keyOf={({ asset, amount, direction, from, hash, network, to }) => [network, hash, direction, asset, amount, from, to].join(" ")}
      empty={<Empty icon={History} title="There are no transactions" />}
      row={({ amount, asset, direction, from, hash, network, status, timestamp, to }) => {
        const inbound = direction === "inbound"
        const Arrow = inbound ? ArrowDownLeft : ArrowUpRight
        return (
          <article className="row transaction">
            <div className="what">
              <h2>
                <Arrow aria-hidden size={16} /> {inbound ? "Received" : "Sent"}
              </h2>
              <dl className="pairs">
                <dt>Hash</dt>
                <dd>
                  <Id text={hash} what="Hash" />
                </dd>
                <dt>{inbound ? "From" : "To"}</dt>
                <dd>
                  <Id text={inbound ? from : to} what={inbound ? "Sender's address" : "Receiver's address"} />
                </dd>
              </dl>
            </div>
            <p className="amount">
              {amount} <span>{symbols.get(asset) ?? asset}</span>
            </p>
            <p className="under when">
              <State value={status} />
              <br />
              {network}
              <br />
              <Time at={timestamp} />
            </p>
          </article>
        )
      }}
    />
  )
}

const Addresses = ({ vaultId }: { readonly vaultId: string }) => {
  const list = useList<DepositAddress>(`/v1/vaults/${vaultId}/addresses`)
  return (
    <Rows
      list={list}
      label="Deposit addresses"
      keyOf={({ address, assetType, network }) => `${network} ${assetType} ${address}`}
      empty={<Empty icon={QrCode} title="There are no deposit addresses" />}
      row={({ address, assetType, network }) => (
        <article className="row address">
          <div className="what">
            <h2 className="address">
              <Id text={address} what="Address" whole />
            </h2>
            <p className="under">
              {network} · {assetType}
            </p>
          </div>
        </article>
      )}
    />
  )
}
