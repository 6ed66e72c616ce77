/** The user's API keys. */
import { KeyRound, Plus } from "lucide-react"
import { Link } from "react-router"
import type { ApiKey } from "../../../credentials/ApiKeys.ts"
import { post } from "../api.ts"
import { useOne, useSurroundings } from "../data.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { Ask } from "../parts/Dialog.tsx"
import { notify } from "../parts/Notices.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time, useNow } from "../parts/Time.tsx"

const SOON_MS = 14 * 86_400_000

const Standing = ({ apiKey: { expiresAt, revokedAt } }: { readonly apiKey: ApiKey }) => {
  const now = useNow(60_000)
  if (revokedAt !== null) return <Status tone="idle">Revoked</Status>
  const left = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - now
  return left <= 0 ? (
    <Status tone="bad">Expired</Status>
  ) : left < SOON_MS ? (
    <Status tone="wait">Expires soon</Status>
  ) : (
    <Status tone="good">Active</Status>
  )
}

export const KeysPage = () => {
  const keys = useOne<{ readonly data: ReadonlyArray<ApiKey> }>("/keys", { every: 30_000 })
  const { data: around } = useSurroundings()
  const names = new Map(around?.vaults.map(({ id, name }) => [id, name]))
  return (
    <Page
      title="API keys"
      lead="A key acts for you: it sees what your roles reach, as far as its scopes and vaults allow."
      actions={
        <LinkButton kind="main" to="/keys/new">
          <Plus aria-hidden size={16} /> New key
        </LinkButton>
      }
    >
      {keys.data === undefined ? (
        keys.error === null ? (
          <Loading />
        ) : (
          <Failure error={keys.error} retry={() => void keys.refetch()} />
        )
      ) : keys.data.data.length === 0 ? (
        <Empty icon={KeyRound} title="You have no keys">
          <p>Create one, and the API answers your programs. Its secret is shown once.</p>
        </Empty>
      ) : (
        <ul className="rows" aria-label="API keys">
          {keys.data.data.map((key) => (
            <li key={key.id}>
              <Row apiKey={key} names={names} done={() => keys.refetch()} />
            </li>
          ))}
        </ul>
      )}
    </Page>
  )
}

const Row = ({
  apiKey: key,
  done,
  names
}: {
  readonly apiKey: ApiKey
  readonly names: ReadonlyMap<string, string>
  readonly done: () => Promise<unknown>
}) => {
  const ended = key.revokedAt !== null
  const name = key.label === "" ? key.id : key.label
  const revoke = async () => {
    await post(`/keys/${key.id}/revoke`)
    await done()
    notify(`${name} revoked`)
  }
  return (
    <article className={ended ? "row key ended" : "row key"}>
      <div className="what">
        <h2>{ended ? name : <Link to={`/keys/${key.id}`}>{name}</Link>}</h2>
        <p className="under">
          {key.scopes.join(", ")} ·{" "}
          {key.vaultIds === null
            ? "all your vaults"
            : key.vaultIds
                .map((id) => names.get(id) ?? id)
                .slice(0, 3)
                .join(", ")}
          {(key.vaultIds?.length ?? 0) > 3 ? ` and ${(key.vaultIds?.length ?? 0) - 3} more` : ""}
          {key.ipAllowlist.length === 0 ? "" : ` · from ${key.ipAllowlist.join(", ")}`}
        </p>
      </div>
      <Standing apiKey={key} />
      <p className="under when">
        {key.lastUsedAt === null ? (
          "Not used yet"
        ) : (
          <>
            Used <Time at={key.lastUsedAt} as="ago" />
          </>
        )}
        <br />
        {ended ? (
          <>
            Revoked <Time at={key.revokedAt ?? ""} as="day" />
          </>
        ) : key.expiresAt === null ? (
          "No expiry"
        ) : (
          <>
            {Date.parse(key.expiresAt) < Date.now() ? "Expired" : "Until"} <Time at={key.expiresAt} as="day" />
          </>
        )}
      </p>
      <div className="actions">
        {ended ? null : (
          <>
            <LinkButton to={`/keys/${key.id}`}>Edit</LinkButton>
            <Ask
              trigger={<Button kind="danger">Revoke</Button>}
              title={`Revoke ${name}?`}
              text="Requests with it are refused from now on. This cannot be undone."
              yes="Revoke the key"
              danger
              act={revoke}
            />
          </>
        )}
      </div>
    </article>
  )
}
