/** Downloads: of a list, of an export of the API, of a text. */
import { Download } from "lucide-react"
import { type ReactNode, useState } from "react"
import { ApiProblem, addressOf, getHead, messageOf } from "../api.ts"
import { toCsv } from "../csv.ts"
import type { ListSource, Path, Row } from "../routeTypes.ts"
import { Button } from "./Button.tsx"
import { Dialog } from "./Dialog.tsx"
import { Choices } from "./Field.tsx"
import { notify } from "./Notices.tsx"

const load = (name: string, href: string) => {
  const link = document.createElement("a")
  link.href = href
  link.download = name
  link.click()
}

const saveText = (name: string, type: string, text: string) => {
  const url = URL.createObjectURL(new Blob([text], { type }))
  load(name, url)
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

const dated = (name: string) => `${name}-${new Date().toISOString().slice(0, 10)}`

/** A button that downloads something, is busy meanwhile, and reports the result. */
const Save = ({
  disabled = false,
  kind = "quiet",
  label,
  save
}: {
  readonly label: string
  readonly disabled?: boolean
  readonly kind?: "quiet" | "main"
  readonly save: () => Promise<string>
}) => {
  const [busy, setBusy] = useState(false)
  const press = async () => {
    setBusy(true)
    try {
      const said = await save()
      if (said !== "") notify(said)
    } catch (error) {
      notify(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button kind={kind} busy={busy} disabled={disabled} onClick={() => void press()}>
      <Download aria-hidden size={15} /> {label}
    </Button>
  )
}

/** Downloads a whole list as CSV, however much of it is shown: its rows, or the lines that `lines` makes of them. */
export const Export = <P extends Path<"GET">>({
  lines = (rows) => Promise.resolve(rows),
  name,
  source
}: {
  readonly name: string
  readonly source: ListSource<P>
  readonly lines?: (rows: ReadonlyArray<Row<P>>) => Promise<ReadonlyArray<unknown>>
}) => (
  <Save
    label="Export CSV"
    save={async () => {
      const { complete, rows, text } = await toCsv(source, lines)
      saveText(`${dated(name)}.csv`, "text/csv", text)
      return complete ? `${rows} rows exported` : `The first ${rows} rows exported; use the API for more`
    }}
  />
)

/** Downloads one response unchanged. */
export const SaveText = ({
  label,
  name,
  read,
  type
}: {
  readonly label: string
  readonly name: string
  readonly type: string
  readonly read: () => Promise<string>
}) => (
  <Save
    label={label}
    save={async () => {
      saveText(name, type, await read())
      return ""
    }}
  />
)

const refusals: Readonly<Record<number, string>> = {
  422: "There are too many transactions for one file. Choose fewer, such as those of a shorter period.",
  429: "Too many exports are running. Try again when one has finished."
}

/** The forms of an export, with their parameters. */
const forms = [
  ["format=csv", "CSV for a spreadsheet", "An apostrophe precedes each amount, so that spreadsheets keep every digit."],
  ["format=csv&amounts=plain", "CSV for a program", "Amounts are digits only. Spreadsheets round long ones."],
  ["format=ndjson", "NDJSON", "One JSON object per line."]
] as const

/**
 * Lets the browser download an export of the API, in a form that the user chooses: `source` is its path and query without
 * that, absent if they are not valid; `lead` says what is in the file, and `children` choose it.
 */
export const ExportFile = ({
  children,
  lead,
  source
}: {
  readonly source: string | undefined
  readonly lead: string
  readonly children?: ReactNode
}) => {
  const [open, setOpen] = useState(false)
  const [form, setForm] = useState<string>(forms[0][0])
  const download = async () => {
    const path = `${source}${form}`
    try {
      // A response without a body has only its status.
      await getHead(path)
    } catch (error) {
      const said = error instanceof ApiProblem ? refusals[error.status] : undefined
      if (said === undefined) throw error
      return said
    }
    // The response names the file.
    load("", addressOf(path))
    setOpen(false)
    return "Download started"
  }
  return (
    <>
      <Button kind="quiet" onClick={() => setOpen(true)}>
        <Download aria-hidden size={15} /> Export
      </Button>
      <Dialog title="Export transactions" lead={lead} open={open} onClose={() => setOpen(false)}>
        {children}
        <Choices
          type="radio"
          legend="Form of the file"
          choices={forms.map(([value, label, hint]) => ({ value, label, hint }))}
          chosen={[form]}
          onChosen={([chosen = form]) => setForm(chosen)}
        />
        <div className="actions end">
          <Save kind="main" label="Download" disabled={source === undefined} save={download} />
        </div>
      </Dialog>
    </>
  )
}
