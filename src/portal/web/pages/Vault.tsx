/** One vault: balances, transactions, statements and deposit addresses. */
import { QrCode } from "lucide-react"
import { Tabs } from "radix-ui"
import { useState } from "react"
import { Link, useParams } from "react-router"
import type { DepositAddress } from "../../../client/index.ts"
import { networkName, short, tokenType } from "../chains.ts"
import { useOne } from "../data.ts"
import { useList } from "../list.ts"
import { Button } from "../parts/Button.tsx"
import { Network, OnChain } from "../parts/Chain.tsx"
import { CopyButton, Id } from "../parts/Copy.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Export } from "../parts/Export.tsx"
import { Page } from "../parts/Page.tsx"
import { QrImage } from "../parts/QrImage.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { useTab } from "../parts/tabs.ts"
import { Balances } from "./Balances.tsx"
import { Statements } from "./Statements.tsx"
import { Transactions } from "./Transactions.tsx"

const tabs = [
  ["balances", "Balances"],
  ["transactions", "Transactions"],
  ["statements", "Statements"],
  ["addresses", "Deposit addresses"]
] as const

export const VaultPage = () => {
  const { id = "" } = useParams()
  const [tab, setTab] = useTab(tabs.map(([name]) => name))
  const found = useOne(`/v1/vaults/${id}`)
  const vault = found.data
  if (vault === undefined) {
    return (
      <Page title="Vault" back={["/vaults", "Vaults"]}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  return (
    <Page
      title={vault.label}
      back={["/vaults", "Vaults"]}
      lead={
        <>
          {vault.networks.map(networkName).join(", ")} · <Id text={vault.id} what="Vault id" />
        </>
      }
      actions={
        <Link className="button plain" to={`/events?vaultId=${id}`}>
          View events
        </Link>
      }
    >
      <Tabs.Root className="tabs" value={tab} onValueChange={setTab}>
        <Tabs.List aria-label="Vault">
          {tabs.map(([value, label]) => (
            <Tabs.Trigger key={value} value={value}>
              {label}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        <Tabs.Content value="balances">
          <Balances vaultId={id} />
        </Tabs.Content>
        <Tabs.Content value="transactions">
          <Transactions vaultId={id} networks={vault.networks} />
        </Tabs.Content>
        <Tabs.Content value="statements">
          <Statements vault={vault} />
        </Tabs.Content>
        <Tabs.Content value="addresses">
          <Addresses vaultId={id} />
        </Tabs.Content>
      </Tabs.Root>
    </Page>
  )
}

const Addresses = ({ vaultId }: { readonly vaultId: string }) => {
  const [shown, setShown] = useState<DepositAddress | null>(null)
  const list = useList(
    `/v1/vaults/${vaultId}/addresses`,
    {},
    { keyOf: ({ address, assetType, network }) => `${network} ${assetType} ${address}` }
  )
  return (
    <>
      <div className="toolbar">
        <span className="spring" />
        <Export name="deposit-addresses" source={list.source} />
      </div>
      <Table
        list={list}
        label="Deposit addresses"
        empty={<Empty icon={QrCode} title="No deposit addresses" />}
        columns={[
          {
            label: "Address",
            heads: true,
            cell: ({ address, network }) => <OnChain is="address" network={network} text={address} whole />
          },
          { label: "Network", cell: ({ network }) => <Network name={network} /> },
          { label: "Receives", cell: ({ assetType }) => tokenType(assetType) },
          {
            label: "QR code",
            align: "right",
            card: "",
            cell: (address) => (
              <Button aria-label={`QR code of ${address.address}`} onClick={() => setShown(address)}>
                <QrCode aria-hidden size={15} /> QR code
              </Button>
            )
          }
        ]}
      />
      <Dialog
        title="Deposit address"
        {...(shown === null ? {} : { lead: `${networkName(shown.network)}, ${tokenType(shown.assetType)}` })}
        open={shown !== null}
        onClose={() => setShown(null)}
      >
        {shown === null ? null : (
          <>
            <QrImage text={shown.address} label={`QR code of ${short(shown.address)}`} />
            <p className="text">
              <code>{shown.address}</code>
              <CopyButton text={shown.address} what="Address" />
            </p>
          </>
        )}
      </Dialog>
    </>
  )
}
