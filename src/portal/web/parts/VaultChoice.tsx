/** A choice of vaults: all of them, or some by name. */
import { useState } from "react"
import type { PortalContext } from "../../server/PortalApi.ts"
import { Choices, TextField } from "./Field.tsx"

export interface VaultChoiceProps {
  readonly legend: string
  readonly all: string
  readonly some: string
  readonly vaults: PortalContext["vaults"]
  /** null for all of them. */
  readonly chosen: ReadonlyArray<string> | null
  readonly onChosen: (chosen: ReadonlyArray<string> | null) => void
  readonly error?: string | undefined
}

/** Above this number there is a search field. */
const SEARCHED = 8

export const VaultChoice = ({ all, chosen, error, legend, onChosen, some, vaults }: VaultChoiceProps) => {
  const [search, setSearch] = useState("")
  const wanted = search.trim().toLowerCase()
  const known = new Set(vaults.map(({ id }) => id))
  const listed = [
    ...vaults,
    // A vault that is no longer accessible can still be removed.
    ...(chosen ?? []).filter((id) => !known.has(id)).map((id) => ({ id, name: id, networks: [] }))
  ]
  const shown = listed.filter(({ id, name }) => wanted === "" || `${name} ${id}`.toLowerCase().includes(wanted))
  return (
    <>
      <Choices
        type="radio"
        legend={legend}
        error={error}
        choices={[
          { value: "all", label: all },
          { value: "some", label: some }
        ]}
        chosen={[chosen === null ? "all" : "some"]}
        onChosen={([which]) => onChosen(which === "all" ? null : [])}
      />
      {chosen === null ? null : (
        <div className={shown.length > SEARCHED ? "inset long" : "inset"}>
          <Choices
            legend={`Vaults: ${chosen.length} of ${listed.length} selected`}
            choices={shown.map(({ id, name, networks }) => ({ value: id, label: name, hint: networks.join(", ") }))}
            chosen={chosen}
            onChosen={onChosen}
          >
            {listed.length > SEARCHED ? <TextField label="Search vaults" type="search" value={search} onValue={setSearch} /> : null}
          </Choices>
        </div>
      )}
    </>
  )
}
