/** Form submission: whether it is in progress, and its errors. */
import { type FormEvent, useRef, useState } from "react"
import { fieldsOf } from "./api.ts"

export interface Sending {
  readonly busy: boolean
  readonly error: unknown
  /** Messages by field. */
  readonly wrong: Readonly<Record<string, string>>
  readonly submit: (event: FormEvent<HTMLFormElement>) => void
}

/** A submit runs `send`, one at a time. If a field is invalid, it gets the focus. */
export const useForm = (send: () => Promise<unknown>): Sending => {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const running = useRef(false)
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (running.current) return
    const form = event.currentTarget
    running.current = true
    setBusy(true)
    setError(null)
    try {
      await send()
    } catch (failure) {
      setError(failure)
      requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
    } finally {
      running.current = false
      setBusy(false)
    }
  }
  return { busy, error, wrong: fieldsOf(error), submit: (event) => void submit(event) }
}
