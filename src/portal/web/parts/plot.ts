/**
 * The base of every chart: drawn by uPlot into an element, redrawn when the color scheme or time zone changes, as wide as
 * its container.
 */
import { type RefObject, useEffect, useRef } from "react"
import type uPlot from "uplot"
import { useTheme } from "../theme.ts"
import { useZone } from "./Time.tsx"

/** Height of a chart in pixels. */
export const HEIGHT = 220

const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** A color that depends on the color scheme, for the canvas. */
export const resolved = (name: string): string => {
  const probe = document.createElement("i")
  probe.style.color = color(name)
  document.body.append(probe)
  const value = getComputedStyle(probe).color
  probe.remove()
  return value
}

/** Style of axes. */
export const axis = (): uPlot.Axis => ({
  stroke: resolved("--soft"),
  grid: { stroke: resolved("--line"), width: 1 },
  ticks: { show: false },
  font: "12px Inter"
})

/** An element that `draw` draws data into. */
export const usePlot = <A>(data: A, draw: (place: HTMLElement, data: A, utc: boolean) => uPlot): RefObject<HTMLDivElement | null> => {
  const place = useRef<HTMLDivElement>(null)
  const [zone] = useZone()
  const [theme] = useTheme()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colors depend on the theme
  useEffect(() => {
    const element = place.current
    if (element === null) return
    let plot = draw(element, data, zone === "utc")
    const again = () => {
      plot.destroy()
      plot = draw(element, data, zone === "utc")
    }
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    const scheme = matchMedia("(prefers-color-scheme: dark)")
    scheme.addEventListener("change", again)
    return () => {
      resized.disconnect()
      scheme.removeEventListener("change", again)
      plot.destroy()
    }
  }, [data, draw, theme, zone])
  return place
}
