/** A choice of one of a few values, in a row. */
import { useId } from "react"

export const Segments = <V extends string | number>({
  choices,
  chosen,
  label,
  onChosen
}: {
  readonly label: string
  readonly choices: ReadonlyArray<readonly [value: V, label: string]>
  readonly chosen: V | undefined
  readonly onChosen: (value: V) => void
}) => {
  const name = useId()
  return (
    <div className="segments" role="radiogroup" aria-label={label}>
      {choices.map(([value, label]) => (
        <label key={value}>
          <input type="radio" name={name} value={value} checked={chosen === value} onChange={() => onChosen(value)} />
          <span>{label}</span>
        </label>
      ))}
    </div>
  )
}
