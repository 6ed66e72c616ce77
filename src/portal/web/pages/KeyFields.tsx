/** The editable properties of a key. */
import type { ApiKey } from "../../../access/keys/ApiKeys.ts"
import type { PortalContext } from "../../server/PortalApi.ts"
import { Choices, Select, TextArea, TextField } from "../parts/Field.tsx"
import { VaultChoice } from "../parts/VaultChoice.tsx"
import { useUser } from "../session.ts"

/** A key in the form. */
export interface Draft {
  readonly label: string
  readonly scopes: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
  readonly ips: string
  /** Days from now, `never`, `date` for the day in `until`, or `kept` to leave it unchanged. */
  readonly expiry: string
  /** yyyy-mm-dd, as in the browser's date field. */
  readonly until: string
  readonly kept: string | null
}

const DAY = 86_400_000
const dateOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

export const emptyDraft = (): Draft => ({
  label: "",
  scopes: ["vault:read"],
  vaultIds: null,
  ips: "",
  expiry: "365",
  until: dateOf(Date.now() + 365 * DAY),
  kept: null
})

export const draftOf = (key: ApiKey): Draft => ({
  label: key.label,
  scopes: key.scopes,
  vaultIds: key.vaultIds,
  ips: key.ipAllowlist.join("\n"),
  expiry: key.expiresAt === null ? "never" : "kept",
  until: dateOf(key.expiresAt === null ? Date.now() + 365 * DAY : Date.parse(key.expiresAt)),
  kept: key.expiresAt
})

const expiryOf = ({ expiry, kept, until }: Draft): string | null =>
  expiry === "never"
    ? null
    : expiry === "kept"
      ? kept
      : expiry === "date"
        ? `${until}T23:59:59.000Z`
        : new Date(Date.now() + Number(expiry) * DAY).toISOString()

/** The draft as the service expects it. */
export const bodyOf = (draft: Draft) => ({
  label: draft.label.trim(),
  scopes: draft.scopes,
  vaultIds: draft.vaultIds,
  ipAllowlist: draft.ips.split(/[\s,]+/).filter((one) => one !== ""),
  expiresAt: expiryOf(draft)
})

const about: Readonly<Record<string, string>> = {
  "vault:read": "Read vaults, balances, transactions and addresses",
  "webhook:read": "Read webhooks, events and deliveries",
  "webhook:manage": "Create and change webhooks, rotate secrets, ping and redeliver; owners only"
}

export interface KeyFieldsProps {
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly around: PortalContext
  readonly wrong: Readonly<Record<string, string>>
}

export const KeyFields = ({ around, draft, onDraft, wrong }: KeyFieldsProps) => {
  const { isOwner } = useUser()
  const set = (change: Partial<Draft>) => onDraft({ ...draft, ...change })
  return (
    <>
      <TextField
        label="Label"
        hint="What the key is for."
        maxLength={200}
        required
        value={draft.label}
        onValue={(label) => set({ label })}
        error={wrong["label"]}
      />
      <Choices
        legend="Scopes"
        error={wrong["scopes"]}
        choices={around.scopes.map((scope) => ({
          value: scope,
          label: scope,
          hint: `${about[scope] ?? ""}${scope === "webhook:manage" && !isOwner ? ". It has no effect while you are not an owner" : ""}`
        }))}
        chosen={draft.scopes}
        onChosen={(scopes) => set({ scopes })}
      />
      {around.vaults.length === 0 ? (
        <p className="note">You do not have the Developer role on any vault yet, so your keys cannot read any.</p>
      ) : (
        <VaultChoice
          legend="Vaults"
          all="All vaults where I have the Developer role, now and later"
          some="Only selected vaults"
          vaults={around.vaults}
          chosen={draft.vaultIds}
          onChosen={(vaultIds) => set({ vaultIds })}
          error={wrong["vaultIds"]}
        />
      )}
      <TextArea
        label="Allowed IP addresses"
        hint="CIDR ranges such as 203.0.113.0/24 or 2001:db8::/32, one per line. Leave empty to allow every address."
        rows={3}
        spellCheck={false}
        value={draft.ips}
        onValue={(ips) => set({ ips })}
        error={wrong["ipAllowlist"]}
      />
      <Select
        label="Expiry"
        {...(draft.expiry === "never" ? { hint: "If the secret leaks, it works until somebody revokes the key. Prefer an expiry." } : {})}
        value={draft.expiry}
        onValue={(expiry) => set({ expiry })}
        error={wrong["expiresAt"]}
      >
        {draft.kept === null ? null : <option value="kept">Unchanged: {dateOf(Date.parse(draft.kept))}</option>}
        <option value="30">30 days from now</option>
        <option value="90">90 days from now</option>
        <option value="365">365 days from now</option>
        <option value="date">On a date</option>
        <option value="never">No expiry</option>
      </Select>
      {draft.expiry === "date" ? (
        <TextField
          label="Last day (UTC)"
          type="date"
          required
          min={dateOf(Date.now())}
          value={draft.until}
          onValue={(until) => set({ until })}
        />
      ) : null}
    </>
  )
}
