/** One transaction of a vault: what is known of it, and every state that it has had. */
import type { ReactNode } from "react"
import { Link, useParams } from "react-router"
import type { TransactionState } from "../../../client/index.ts"
import { networkName } from "../chains.ts"
import { useOne, useSymbols } from "../data.ts"
import { Amount, grouped } from "../parts/Amount.tsx"
import { OnChain } from "../parts/Chain.tsx"
import { Id } from "../parts/Copy.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { State } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"

type SymbolOf = (asset: string) => string

export const TransactionPage = () => {
  const { id = "", transactionId = "" } = useParams()
  const vault = useOne(`/v1/vaults/${id}`)
  const found = useOne(`/v1/vaults/${id}/transactions/${transactionId}`, { every: 10_000 })
  const transaction = found.data
  const symbolOf = useSymbols(transaction?.history.flatMap(({ asset, fee }) => [asset, ...(fee === null ? [] : [fee.asset])]) ?? [])
  const back = [`/vaults/${id}?show=transactions`, vault.data?.label ?? "Vault"] as const
  if (transaction === undefined) {
    return (
      <Page title="Transaction" back={back}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  const { amount, asset, blockHash, direction, fee, from, hash, history, historyTruncated, network, to } = transaction
  const given = (name: string, value: string | null): ReadonlyArray<readonly [string, ReactNode]> => (value === null ? [] : [[name, value]])
  return (
    <Page title="Transaction" back={back} lead={<Id text={transaction.id} what="Transaction id" whole />}>
      <Facts
        rows={[
          [direction === "inbound" ? "Received" : "Sent", <Amount key="amount" amount={amount} symbol={symbolOf(asset)} />],
          ...(fee === null ? [] : [["Fee", <Amount key="fee" amount={fee.amount} symbol={symbolOf(fee.asset)} />] as const]),
          ["Status", <State key="status" value={transaction.status} />],
          ["Hash", <OnChain key="hash" is="transaction" network={network} text={hash} whole />],
          ["From", <OnChain key="from" is="address" network={network} text={from} whole />],
          ["To", <OnChain key="to" is="address" network={network} text={to} whole />],
          ["Network", networkName(network)],
          ["Time", <Time key="time" at={transaction.timestamp} />],
          ...given("Block", transaction.blockNumber),
          ...(blockHash === null ? [] : [["Block hash", <Id key="block" text={blockHash} what="Block hash" whole />] as const]),
          ...given("Memo", transaction.memo),
          ...given("Platform's id", transaction.externalId),
          ["Last change", <Time key="change" at={transaction.updatedAt} />]
        ]}
      />
      <Section title="History" lead={historyTruncated ? "Its newest 1,000 states." : "Every state that it has had, oldest first."}>
        <ol className="timeline" aria-label="History">
          {history.map((state, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: states are only added at the end, and several can have one time
            <Step key={index} number={index + 1} state={state} before={history[index - 1]} symbolOf={symbolOf} />
          ))}
        </ol>
      </Section>
    </Page>
  )
}

/** The fields that a later state may correct, with their labels and values as text. */
const fields: ReadonlyArray<readonly [label: string, of: (state: TransactionState, symbolOf: SymbolOf) => string | null]> = [
  ["Amount", ({ amount, asset }, symbolOf) => `${grouped(amount)} ${symbolOf(asset)}`],
  ["From", ({ from }) => from],
  ["To", ({ to }) => to],
  ["Time", ({ timestamp }) => timestamp],
  ["Fee", ({ fee }, symbolOf) => (fee === null ? null : `${grouped(fee.amount)} ${symbolOf(fee.asset)}`)],
  ["Block", ({ blockNumber }) => blockNumber],
  ["Block hash", ({ blockHash }) => blockHash],
  ["Memo", ({ memo }) => memo],
  ["Platform's id", ({ externalId }) => externalId]
]

const Step = ({
  before,
  number,
  state,
  symbolOf
}: {
  readonly number: number
  readonly state: TransactionState
  readonly before: TransactionState | undefined
  readonly symbolOf: SymbolOf
}) => (
  <li>
    <span className="number">{number}</span>
    <div>
      <p>
        <State value={state.status} /> <Time at={state.occurredAt} />
        {state.eventIds.map((id) => (
          <Link key={id} to={`/events/${id}`}>
            View event
          </Link>
        ))}
      </p>
      {fields.flatMap(([label, of]) => {
        const [old, now] = [before === undefined ? undefined : of(before, symbolOf), of(state, symbolOf)]
        return old === undefined || old === now
          ? []
          : [
              <p className="under" key={label}>
                {label}: <bdi>{old ?? "none"}</bdi> → <bdi>{now ?? "none"}</bdi>
              </p>
            ]
      })}
    </div>
  </li>
)
