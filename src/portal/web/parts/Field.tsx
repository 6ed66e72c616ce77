/** Form fields: label, control, hint and error. */
import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from "react"

interface Common {
  readonly label: string
  readonly hint?: ReactNode
  readonly error?: string | undefined
}

interface Described {
  readonly id: string
  readonly "aria-describedby": string | undefined
  readonly "aria-invalid": boolean | undefined
}

/** The elements that describe a control: its hint and its error. */
const descriptionOf = (id: string, hint: ReactNode, error: string | undefined) =>
  [...(hint === undefined ? [] : [`${id}-hint`]), ...(error === undefined ? [] : [`${id}-error`])].join(" ") || undefined

const Field = ({ children, error, hint, label }: Common & { readonly children: (described: Described) => ReactNode }) => {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": descriptionOf(id, hint, error), "aria-invalid": error === undefined ? undefined : true })}
      {hint === undefined ? null : (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error === undefined ? null : (
        <p className="wrong" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  )
}

type Change = { readonly value: string; readonly onValue: (value: string) => void }

export const TextField = ({
  error,
  hint,
  label,
  onValue,
  ...rest
}: Common & Change & Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value">) => (
  <Field label={label} hint={hint} error={error}>
    {(described) => <input {...rest} {...described} onChange={({ target }) => onValue(target.value)} />}
  </Field>
)

/** A one-time code of an authenticator app, or a backup code. */
export const CodeField = (props: Common & Change) => (
  <TextField {...props} autoComplete="one-time-code" inputMode="numeric" className="code" required />
)

export const TextArea = ({
  error,
  hint,
  label,
  onValue,
  ...rest
}: Common & Change & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "onChange" | "value">) => (
  <Field label={label} hint={hint} error={error}>
    {(described) => <textarea {...rest} {...described} onChange={({ target }) => onValue(target.value)} />}
  </Field>
)

export const Select = ({
  children,
  error,
  hint,
  label,
  onValue,
  ...rest
}: Common & Change & Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value"> & { readonly children: ReactNode }) => (
  <Field label={label} hint={hint} error={error}>
    {(described) => (
      <select {...rest} {...described} onChange={({ target }) => onValue(target.value)}>
        {children}
      </select>
    )}
  </Field>
)

export interface Choice<V extends string = string> {
  readonly value: V
  readonly label: string
  readonly hint?: ReactNode
}

export interface ChoicesProps<V extends string> {
  readonly legend: string
  readonly hint?: ReactNode
  readonly error?: string | undefined
  readonly choices: ReadonlyArray<Choice<V>>
  readonly chosen: ReadonlyArray<V>
  readonly onChosen: (chosen: ReadonlyArray<V>) => void
  readonly type?: "checkbox" | "radio"
  readonly children?: ReactNode
}

/** Checkboxes or radio buttons. `children` come first. */
export const Choices = <V extends string>({
  children,
  chosen,
  choices,
  error,
  hint,
  legend,
  onChosen,
  type = "checkbox"
}: ChoicesProps<V>) => {
  const id = useId()
  const toggle = (value: V) =>
    onChosen(type === "radio" ? [value] : chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value])
  return (
    <fieldset className="field" aria-describedby={descriptionOf(id, hint, error)}>
      <legend>{legend}</legend>
      {hint === undefined ? null : (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error === undefined ? null : (
        <p className="wrong" id={`${id}-error`}>
          {error}
        </p>
      )}
      {children}
      <div className="choices">
        {choices.map(({ hint, label, value }) => (
          <label key={value} className="choice">
            <input type={type} name={id} value={value} checked={chosen.includes(value)} onChange={() => toggle(value)} />
            <span>
              {label}
              {hint === undefined ? null : <small>{hint}</small>}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** A checkbox that takes effect immediately. */
export const Toggle = ({
  checked,
  label,
  onChecked
}: {
  readonly label: string
  readonly checked: boolean
  readonly onChecked: (checked: boolean) => void
}) => (
  <label className="toggle">
    <input type="checkbox" checked={checked} onChange={({ target }) => onChecked(target.checked)} />
    {label}
  </label>
)
