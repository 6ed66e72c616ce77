/** The headers of a webhook, whose stored values are not shown. C-12. */
import { Plus, X } from "lucide-react"
import { Button } from "../parts/Button.tsx"
import { TextField } from "../parts/Field.tsx"

/** A header in the form; null stands for the stored value. */
export interface DraftHeader {
  readonly name: string
  readonly value: string | null
}

/** Most headers of a webhook. */
const MAX_HEADERS = 10

export const HeaderFields = ({
  error,
  headers,
  onHeaders,
  stored
}: {
  readonly headers: ReadonlyArray<DraftHeader>
  readonly onHeaders: (headers: ReadonlyArray<DraftHeader>) => void
  /** The headers whose values are stored. */
  readonly stored: ReadonlyArray<DraftHeader>
  readonly error: string | undefined
}) => {
  const set = (at: number, change: Partial<DraftHeader>) =>
    onHeaders(headers.map((header, index) => (index === at ? { ...header, ...change } : header)))
  const isStored = (name: string) => stored.some((known) => known.name.toLowerCase() === name.toLowerCase())
  return (
    <fieldset className="field">
      <legend>Headers</legend>
      <p className="hint">
        Optional. Every request carries them, for an API gateway in front of the endpoint. Values are stored encrypted and are not shown
        again; another host or port of the URL or the token URL needs them again.
      </p>
      {error === undefined ? null : <p className="wrong">{error}</p>}
      {headers.map(({ name, value }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a header has no identity but its place
        <div className="header-fields" key={index}>
          <TextField
            label={`Name of header ${index + 1}`}
            required
            autoComplete="off"
            spellCheck={false}
            value={name}
            onValue={(name) => set(index, { name })}
          />
          <TextField
            label={`Value of header ${index + 1}`}
            required={value !== null}
            maxLength={1_024}
            autoComplete="off"
            spellCheck={false}
            placeholder={value === null ? "Stored value" : ""}
            value={value ?? ""}
            onValue={(text) => set(index, { value: text === "" && isStored(name) ? null : text })}
          />
          <Button
            kind="quiet"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => onHeaders(headers.filter((_, other) => other !== index))}
          >
            <X aria-hidden size={16} />
          </Button>
        </div>
      ))}
      {headers.length < MAX_HEADERS ? (
        <Button onClick={() => onHeaders([...headers, { name: "", value: "" }])}>
          <Plus aria-hidden size={16} /> Add header
        </Button>
      ) : null}
    </fieldset>
  )
}
