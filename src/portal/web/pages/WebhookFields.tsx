/** The editable properties of a webhook. */
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import type { EventKind } from "../../../client/index.ts"
import type { PortalContext } from "../../server/PortalApi.ts"
import { Code } from "../parts/Code.tsx"
import { Choices, TextField } from "../parts/Field.tsx"
import { VaultChoice } from "../parts/VaultChoice.tsx"
import { type DraftHeader, HeaderFields } from "./HeaderFields.tsx"
import { type DraftOAuth, OAuthFields } from "./OAuthFields.tsx"

/** A webhook in the form. */
export interface Draft {
  readonly url: string
  readonly description: string
  readonly entityIds: ReadonlyArray<string>
  readonly eventKinds: ReadonlyArray<EventKind>
  readonly vaultIds: ReadonlyArray<string> | null
  readonly notificationEmail: string
  readonly headers: ReadonlyArray<DraftHeader>
  readonly oauth: DraftOAuth | null
}

export interface WebhookFieldsProps {
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly around: PortalContext
  readonly wrong: Readonly<Record<string, string>>
  /** Whether it is new: only then can entities and the notification address be chosen. */
  readonly fresh: boolean
  /** What is stored, and so are its secret values. */
  readonly stored: Pick<Draft, "headers" | "oauth">
}

/** “443 or 8443” */
const listed = (ports: ReadonlyArray<number>): string =>
  ports.length < 2 ? ports.join("") : `${ports.slice(0, -1).join(", ")} or ${ports.at(-1)}`

export const WebhookFields = ({ around, draft, fresh, onDraft, stored, wrong }: WebhookFieldsProps) => {
  const set = (change: Partial<Draft>) => onDraft({ ...draft, ...change })
  // The message for a list, or for one of its items, is shown at its field.
  const of = (field: string) => Object.entries(wrong).find(([name]) => name === field || name.startsWith(`${field}.`))?.[1]
  return (
    <>
      <TextField
        label="Endpoint URL"
        hint={`https, a public host name, port ${listed(around.webhookPorts)}. It must return a 2xx status within 10 seconds.${around.webhookSourceAddresses.length === 0 ? "" : ` Requests come from ${around.webhookSourceAddresses.join(", ")}.`}`}
        type="url"
        required
        placeholder="https://hooks.example.com/custody"
        value={draft.url}
        onValue={(url) => set({ url })}
        error={of("url")}
      />
      <TextField
        label="Description"
        hint="Optional. A name for this webhook."
        maxLength={1_000}
        value={draft.description}
        onValue={(description) => set({ description })}
        error={of("description")}
      />
      {fresh ? (
        <Choices
          legend="Entities"
          hint={`Units of your organization whose events it receives. Each can have ${around.activePerEntity} active or paused webhooks.`}
          choices={around.entities.map(({ id, name }) => ({ value: id, label: name }))}
          chosen={draft.entityIds}
          onChosen={(entityIds) => set({ entityIds })}
          error={of("entityIds")}
        />
      ) : null}
      <KindChoice kinds={around.kinds} chosen={draft.eventKinds} onChosen={(eventKinds) => set({ eventKinds })} error={of("eventKinds")} />
      <VaultChoice
        legend="Vault filter"
        all="All vaults of these entities, including later ones; requires the Developer role on each"
        some="Only events of these vaults"
        vaults={around.vaults.filter(({ entityId }) => draft.entityIds.includes(entityId))}
        chosen={draft.vaultIds}
        onChosen={(vaultIds) => set({ vaultIds })}
        error={of("vaultIds")}
      />
      {fresh ? (
        <TextField
          label="Notification e-mail"
          hint="Receives a notice when deliveries keep failing, when the endpoint is down and when it has recovered, when a delivery fails permanently, and when the webhook is disabled automatically."
          type="email"
          required
          value={draft.notificationEmail}
          onValue={(notificationEmail) => set({ notificationEmail })}
          error={of("notificationEmail")}
        />
      ) : null}
      <HeaderFields headers={draft.headers} stored={stored.headers} onHeaders={(headers) => set({ headers })} error={of("headers")} />
      <OAuthFields oauth={draft.oauth} isStored={stored.oauth !== null} onOAuth={(oauth) => set({ oauth })} errorOf={of} />
    </>
  )
}

const groups: Readonly<Record<string, string>> = {
  transaction: "Transactions",
  deposit_address: "Deposit addresses",
  balance: "Balances",
  vault: "Vaults",
  webhook: "Webhooks",
  api_key: "API keys"
}

/** Event kinds by topic, each with an example payload. */
const KindChoice = ({
  chosen,
  error,
  kinds,
  onChosen
}: {
  readonly kinds: PortalContext["kinds"]
  readonly chosen: ReadonlyArray<EventKind>
  readonly onChosen: (chosen: ReadonlyArray<EventKind>) => void
  readonly error: string | undefined
}) => {
  const grouped = Map.groupBy(kinds, ({ name }) => name.slice(0, name.indexOf(".")))
  return (
    <div className="kinds">
      {[...grouped].map(([group, members], index) => (
        <div key={group}>
          <Choices
            legend={index === 0 ? `Event kinds: ${(groups[group] ?? group).toLowerCase()}` : (groups[group] ?? group)}
            {...(index === 0 ? { hint: "The webhook receives only the kinds that you select.", error } : {})}
            choices={members.map(({ name, scope, when }) => ({
              value: name,
              label: name,
              hint: `${when}${scope === "entity" ? ". Passes any vault filter" : ""}`
            }))}
            chosen={chosen}
            onChosen={onChosen}
          />
          <Examples kinds={members} />
        </div>
      ))}
    </div>
  )
}

/** Example payloads of these kinds from the API's own description, loaded when opened. */
const Examples = ({ kinds }: { readonly kinds: PortalContext["kinds"] }) => {
  const [open, setOpen] = useState(false)
  const { data, error } = useQuery({
    queryKey: ["openapi"],
    queryFn: async (): Promise<ApiDescription> => (await fetch("/v1/openapi.json")).json(),
    enabled: open,
    staleTime: Number.POSITIVE_INFINITY
  })
  return (
    <details className="example" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Example payloads</summary>
      {kinds.map(({ name, schemaVersion }) => {
        const example = data?.webhooks[name]?.post.requestBody.content["application/json"].example
        return example === undefined ? null : (
          <Code key={name} title={`${name}, schema version ${schemaVersion}`} text={JSON.stringify(example, null, 2)} />
        )
      })}
      <p className="hint">
        {error === null ? "" : "The examples could not be loaded. "}
        <a href="/v1/docs#tag/events">Schemas are in the API reference.</a>
      </p>
    </details>
  )
}

interface ApiDescription {
  readonly webhooks: Readonly<
    Record<
      string,
      { readonly post: { readonly requestBody: { readonly content: { readonly "application/json": { readonly example?: unknown } } } } }
    >
  >
}
