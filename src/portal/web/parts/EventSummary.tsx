/** What an event is about, in one line: amount and asset, vault, counterparty, hash; or the address, the vault, the webhook, the key. */
import { ArrowDownLeft, ArrowUpRight } from "lucide-react"
import { Link } from "react-router"
import type { DepositAddress, Transaction, Vault } from "../../../client/index.ts"
import { networkName, short } from "../chains.ts"
import { useNames } from "../data.ts"
import { Amount } from "./Amount.tsx"
import { Time } from "./Time.tsx"

/** The fields of an envelope's data; each kind has some of them. */
export interface EventData {
  readonly vaultId?: string
  readonly transaction?: Transaction
  readonly balance?: { readonly asset: string; readonly network: string; readonly symbol: string; readonly amount: string }
  readonly depositAddress?: DepositAddress
  readonly vault?: Vault
  readonly webhookId?: string
  readonly webhook?: { readonly disabledReason?: string; readonly previousSecretExpiresAt?: string }
  readonly apiKey?: { readonly id: string; readonly label: string; readonly expiresAt: string }
}

/** Assets in events, whose symbols a list needs. */
export const assetsOf = (data: ReadonlyArray<EventData | undefined>): ReadonlyArray<string> =>
  data.flatMap((one) => one?.transaction?.asset ?? [])

export interface EventSummaryProps {
  readonly data: EventData | undefined
  readonly symbolOf: (asset: string) => string
  /** Whether to name the vault; not on a page that is all about it. */
  readonly vault?: boolean
}

export const EventSummary = ({ data, symbolOf, vault = true }: EventSummaryProps) => {
  const nameOf = useNames()
  if (data === undefined) return null
  const { apiKey, balance, depositAddress, transaction, vaultId, webhook } = data
  const where = vault && vaultId !== undefined ? <span>{nameOf(vaultId)}</span> : null
  if (transaction !== undefined) {
    const inbound = transaction.direction === "inbound"
    const Arrow = inbound ? ArrowDownLeft : ArrowUpRight
    const party = inbound ? transaction.from : transaction.to
    return (
      <span className="about">
        <span className="main">
          <Arrow aria-hidden size={14} />
          <Amount amount={transaction.amount} symbol={symbolOf(transaction.asset)} sign={inbound ? "+" : "−"} />
        </span>
        {where}
        {party === "" ? null : (
          <span title={party}>
            {inbound ? "from" : "to"} <code>{short(party, 6, 4)}</code>
          </span>
        )}
        <span title={transaction.hash}>
          hash <code>{short(transaction.hash, 6, 4)}</code>
        </span>
      </span>
    )
  }
  if (balance !== undefined)
    return (
      <span className="about">
        <span className="main">
          <Amount amount={balance.amount} symbol={balance.symbol} />
        </span>
        {where}
        <span>{networkName(balance.network)}</span>
      </span>
    )
  if (depositAddress !== undefined)
    return (
      <span className="about">
        <span className="main" title={depositAddress.address}>
          <code>{short(depositAddress.address)}</code>
        </span>
        {where}
        <span>{networkName(depositAddress.network)}</span>
      </span>
    )
  if (webhook?.previousSecretExpiresAt !== undefined)
    return (
      <span className="about">
        <span>
          Previous secret valid until <Time at={webhook.previousSecretExpiresAt} />
        </span>
      </span>
    )
  if (apiKey !== undefined)
    return (
      <span className="about">
        <span className="main">{apiKey.label === "" ? apiKey.id : apiKey.label}</span>
        <span>
          expires <Time at={apiKey.expiresAt} />
        </span>
      </span>
    )
  return <span className="about">{where}</span>
}

/** Links to what an event is about. */
export const EventLinks = ({ data }: { readonly data: EventData }) => (
  <>
    {data.transaction === undefined || data.vaultId === undefined ? null : (
      <Link to={`/vaults/${data.vaultId}/transactions/${data.transaction.id}`}>View transaction</Link>
    )}
    {data.vaultId === undefined ? null : <Link to={`/vaults/${data.vaultId}`}>View vault</Link>}
    {data.webhookId === undefined ? null : <Link to={`/webhooks/${data.webhookId}`}>View webhook</Link>}
  </>
)
