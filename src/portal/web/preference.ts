/** Choices of display that the browser keeps. Every part of the page that shows one changes with it. */
import { useSyncExternalStore } from "react"

/** A choice under a name in the browser's storage; the first value is the default. */
export const preference = <V extends string>(name: string, values: readonly [V, ...ReadonlyArray<V>]) => {
  const kept = localStorage.getItem(name)
  let value = values.find((one) => one === kept) ?? values[0]
  const listeners = new Set<() => void>()
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const current = () => value
  const choose = (chosen: string) => {
    value = values.find((one) => one === chosen) ?? values[0]
    localStorage.setItem(name, value)
    for (const listener of listeners) listener()
  }
  return { current, subscribe, use: (): readonly [V, (chosen: string) => void] => [useSyncExternalStore(subscribe, current), choose] }
}
