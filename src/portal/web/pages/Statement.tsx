/** One statement: a vault's UTC day, its seal, and whether it verifies. */
import { ChevronLeft, ChevronRight } from "lucide-react"
import { Link, useParams, useSearchParams } from "react-router"
import type { Statement } from "../../../client/index.ts"
import { fileLabel } from "../../../values/fileLabel.ts"
import { getText } from "../api.ts"
import { useOne } from "../data.ts"
import { dayAfter } from "../days.ts"
import { LinkButton } from "../parts/Button.tsx"
import { Id } from "../parts/Copy.tsx"
import { SaveText } from "../parts/Export.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { useVerification, Verified } from "../parts/Verified.tsx"
import { StatementLines } from "./StatementLines.tsx"

export const StatementPage = () => {
  const { date = "", id = "" } = useParams()
  const [search] = useSearchParams()
  const revision = search.get("revision")
  const path = `/v1/vaults/${id}/statements/${date}${revision === null ? "" : `?revision=${encodeURIComponent(revision)}`}` as const
  const vault = useOne(`/v1/vaults/${id}`)
  const found = useOne(path)
  const newest = useOne(`/v1/vaults/${id}/statements/${date}`)
  const days = useOne(`/vaults/${id}/statement-days`).data
  const back = [`/vaults/${id}?show=statements&month=${date.slice(0, 7)}`, vault.data?.label ?? "Vault"] as const
  const statement = found.data
  if (statement === undefined) {
    return (
      <Page title={`Statement of ${date}`} back={back}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  const name = `${fileLabel(vault.data?.label ?? "") || id}-statement-${date}-${statement.revision}`
  return (
    <Page
      title={`Statement of ${date}`}
      back={back}
      lead={
        <>
          The UTC day from midnight to midnight. <Verified statement={statement} />
        </>
      }
      actions={
        <>
          <SaveText label="JSON" name={`${name}.json`} type="application/json" read={() => getText(path)} />
          <SaveText label="CSV" name={`${name}.csv`} type="text/csv" read={() => getText(path, "text/csv")} />
          {days === undefined || date <= days.first ? null : (
            <LinkButton to={`/vaults/${id}/statements/${dayAfter(date, -1)}`}>
              <ChevronLeft aria-hidden size={16} /> Day before
            </LinkButton>
          )}
          {days === undefined || dayAfter(date, 1) >= days.next ? null : (
            <LinkButton to={`/vaults/${id}/statements/${dayAfter(date, 1)}`}>
              Day after <ChevronRight aria-hidden size={16} />
            </LinkButton>
          )}
        </>
      }
    >
      {(newest.data?.revision ?? 0) > statement.revision ? (
        <p className="note">
          Later records changed this day. <Link to={`/vaults/${id}/statements/${date}`}>Show the newest revision</Link>
        </p>
      ) : null}
      <StatementLines lines={statement.assets} empty="An empty day: no balances and no transactions" />
      <Seal statement={statement} newest={newest.data?.revision ?? statement.revision} />
    </Page>
  )
}

/** The seal of the statement. */
const Seal = ({ newest, statement }: { readonly statement: Statement; readonly newest: number }) => {
  const { data } = useVerification(statement)
  const { date, hash, previousHash, revision, sealedAt, vaultId } = statement
  const said =
    data === undefined
      ? "Verifying …"
      : data === "impossible"
        ? "This browser cannot verify Ed25519 signatures; the TypeScript client and the documentation show how to do it elsewhere."
        : data.valid
          ? "This browser recomputed the hash and verified the signature with the published key."
          : `It does not verify: ${data.difference}.`
  return (
    <Section title="Seal" lead={said}>
      <Facts
        rows={[
          ["Sealed", <Time key="sealed" at={sealedAt} />],
          [
            "Revision",
            newest === 1
              ? "1, the only one"
              : Array.from({ length: newest }, (_, index) => index + 1).map((one) =>
                  one === revision ? (
                    <b key={one}>{one} </b>
                  ) : (
                    <Link key={one} to={`/vaults/${vaultId}/statements/${date}?revision=${one}`}>
                      {one}{" "}
                    </Link>
                  )
                )
          ],
          ["Hash", <Id key="hash" text={hash} what="Hash" whole />],
          [
            "Previous hash",
            previousHash === null ? "None: it is the first of the chain" : <Id key="previous" text={previousHash} what="Hash" whole />
          ],
          [
            "Signing key",
            data !== undefined && data !== "impossible" && data.valid ? <Id key="kid" text={data.kid} what="Key id" whole /> : "Unknown"
          ],
          [
            "Verify it yourself",
            <a key="docs" href="/v1/docs/guides/statements">
              How to verify a statement
            </a>
          ]
        ]}
      />
    </Section>
  )
}
