/** The user's API keys; revoked ones are collapsed. Owners also see the keys of others, and revoke them. */
import { KeyRound, Plus } from "lucide-react"
import { Link } from "react-router"
import type { ApiKey } from "../../../access/keys/ApiKeys.ts"
import { post } from "../api.ts"
import { useNames } from "../data.ts"
import { useList } from "../list.ts"
import { LinkButton } from "../parts/Button.tsx"
import { Ask } from "../parts/Dialog.tsx"
import { expiryOf } from "../parts/expiry.ts"
import { notify } from "../parts/Notices.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time, useNow } from "../parts/Time.tsx"
import { useUser } from "../session.ts"

const tones = { never: "wait", later: "good", soon: "wait", expired: "bad" } as const

/** Whether a key is valid, and for how long. */
const KeyState = ({ apiKey: { expiresAt, revokedAt } }: { readonly apiKey: ApiKey }) => {
  const now = useNow(60_000)
  if (revokedAt !== null) return <Status tone="idle">Revoked</Status>
  const { state, words } = expiryOf(expiresAt, now)
  return (
    <span title={expiresAt ?? undefined}>
      <Status tone={tones[state]}>{words}</Status>
    </span>
  )
}

export const KeysPage = () => {
  const { isOwner } = useUser()
  const live = useList("/keys", {}, { every: 30_000 })
  const revoked = useList("/keys", { revoked: "true" })
  const refetch = () => Promise.all([live.refetch(), revoked.refetch()])
  return (
    <Page
      title="API keys"
      lead="A key acts on your behalf: it can see what your roles allow, limited by its scopes and vaults."
      actions={
        <LinkButton kind="main" to="/keys/new">
          <Plus aria-hidden size={16} /> New key
        </LinkButton>
      }
    >
      <Rows
        list={live}
        label="API keys"
        empty={
          <Empty icon={KeyRound} title="No API keys yet">
            <p>Create a key to call the API. Its secret is shown once.</p>
          </Empty>
        }
        row={(key) => <Row apiKey={key} done={refetch} />}
      />
      {(revoked.rows ?? []).length === 0 ? null : (
        <details className="folded">
          <summary>Revoked keys</summary>
          <Rows list={revoked} label="Revoked keys" empty={null} row={(key) => <Row apiKey={key} done={refetch} />} />
        </details>
      )}
      {isOwner ? <OthersKeys /> : null}
    </Page>
  )
}

const OthersKeys = () => {
  const { organization } = useUser()
  const list = useList("/keys-of-others", {}, { every: 30_000 })
  return (
    <Section
      title="Keys of others"
      lead={`Keys of other people in ${organization.name}. Owners see them without secrets and can revoke them.`}
    >
      <Rows
        list={list}
        label="Keys of others"
        empty={<p className="hint">Nobody else has an API key.</p>}
        row={(key) => <Row apiKey={key} whose={key.userName} done={list.refetch} />}
      />
    </Section>
  )
}

interface RowProps {
  readonly apiKey: ApiKey
  /** The name of its user if that is somebody else. */
  readonly whose?: string
  readonly done: () => Promise<unknown>
}

const Row = ({ apiKey: key, done, whose }: RowProps) => {
  const nameOf = useNames()
  const ended = key.revokedAt !== null
  const name = key.label === "" ? key.id : key.label
  const revoke = async () => {
    await post(`/keys/${key.id}/revoke`)
    await done()
    notify(`${name} revoked`)
  }
  return (
    <article className="row key">
      <div className="what">
        <h2>{ended || whose !== undefined ? name : <Link to={`/keys/${key.id}`}>{name}</Link>}</h2>
        {whose === undefined ? null : <p>{whose}</p>}
        <p className="under">
          <code>{key.hint}</code> · {key.scopes.join(", ")} ·{" "}
          {key.vaultIds === null ? `all ${whose === undefined ? "your" : "their"} vaults` : key.vaultIds.map(nameOf).slice(0, 3).join(", ")}
          {(key.vaultIds?.length ?? 0) > 3 ? ` and ${(key.vaultIds?.length ?? 0) - 3} more` : ""}
          {key.ipAllowlist.length === 0 ? "" : ` · from ${key.ipAllowlist.join(", ")}`}
        </p>
      </div>
      <KeyState apiKey={key} />
      <p className="under when">
        {key.lastUsedAt === null ? (
          "Never used"
        ) : (
          <>
            Last used <Time at={key.lastUsedAt} as="ago" />
            {key.lastUsedAddress === null ? "" : ` from ${key.lastUsedAddress}`}
          </>
        )}
        <span className="block">
          {ended ? (
            <>
              Revoked <Time at={key.revokedAt ?? ""} as="day" />
            </>
          ) : (
            <>
              Created <Time at={key.createdAt} as="day" />
            </>
          )}
        </span>
      </p>
      {ended ? null : (
        <div className="actions">
          {whose === undefined ? <LinkButton to={`/keys/new?replaces=${key.id}`}>Rotate</LinkButton> : null}
          <Ask
            label="Revoke"
            kind="danger"
            title={`Revoke ${name}?`}
            text="Every program that uses it gets 401 from its next request. This cannot be undone."
            yes="Revoke key"
            danger
            act={revoke}
          />
        </div>
      )}
    </article>
  )
}
