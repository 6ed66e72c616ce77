/**
 * The look of a deployment's portal: name, logo and accent color. The color is moved towards black or white until text in
 * it, and white or dark text on it, has a readable contrast (WCAG 2.2, 4.5 to 1).
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { InvalidSettings } from "../../runtime/settings/Settings.ts"
import type { Values } from "../../runtime/settings/table.ts"

/** Largest logo, in bytes. */
const MAX_LOGO = 100 * 1024
const CONTRAST = 4.5
/** Surfaces of the light and the dark scheme from style/base.css: those with the least contrast. */
const LIGHT: Rgb = [246, 247, 249],
  DARK: Rgb = [30, 35, 44]

type Rgb = readonly [number, number, number]

const parse = (hex: string): Rgb => [
  Number.parseInt(hex.slice(1, 3), 16),
  Number.parseInt(hex.slice(3, 5), 16),
  Number.parseInt(hex.slice(5, 7), 16)
]
const write = (rgb: Rgb): string => `#${rgb.map((one) => Math.round(one).toString(16).padStart(2, "0")).join("")}`

const luminance = (rgb: Rgb): number => {
  const [r = 0, g = 0, b = 0] = rgb.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** The contrast of two colors, 1 to 21. */
const contrast = (a: Rgb, b: Rgb): number => {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((one, other) => other - one)
  return (light + 0.05) / (dark + 0.05)
}

/** The color, moved towards another until it is readable on a surface. */
const readable = (color: Rgb, surface: Rgb, towards: number): Rgb => {
  for (let share = 0; share <= 1; share += 0.05) {
    const mix = (one: number) => one + (towards - one) * share
    const moved: Rgb = [mix(color[0]), mix(color[1]), mix(color[2])]
    if (contrast(moved, surface) >= CONTRAST) return moved
  }
  return [towards, towards, towards]
}

/** The custom properties of an accent color, for both color schemes; both meet the contrast. */
export const accentOf = (hex: string): string => {
  const color = parse(hex)
  const [light, dark] = [readable(color, LIGHT, 0), readable(color, DARK, 255)]
  const tint = (one: Rgb, surface: Rgb, share: number): string => {
    const mix = (from: number, to: number) => from + (to - from) * share
    return write([mix(surface[0], one[0]), mix(surface[1], one[1]), mix(surface[2], one[2])])
  }
  return `:root{--accent:light-dark(${write(light)},${write(dark)});--on-accent:light-dark(#ffffff,#0b1018);--tint:light-dark(${tint(light, [255, 255, 255], 0.08)},${tint(dark, [22, 26, 33], 0.12)});--chart:light-dark(${write(light)},${write(dark)})}`
}

/** A logo to serve. */
export interface Logo {
  readonly type: string
  readonly bytes: Uint8Array
}

/** The logo from the settings, if there is one. Fails if the file cannot be used. */
export const logoOf = ({ portalLogoFile }: Values): Effect.Effect<Logo | undefined, InvalidSettings> => {
  if (portalLogoFile === undefined) return Effect.succeed(undefined)
  const invalid = (expected: string) =>
    new InvalidSettings({ faults: [`PORTAL_LOGO_FILE: read “${portalLogoFile}”, expected ${expected}.`] })
  const type = { ".svg": "image/svg+xml", ".png": "image/png" }[path.extname(portalLogoFile).toLowerCase()]
  if (type === undefined) return invalid("a file that ends with .svg or .png")
  return Effect.try({ try: () => fs.readFileSync(portalLogoFile), catch: () => invalid("a file that can be read") }).pipe(
    Effect.filterOrFail(
      ({ byteLength }) => byteLength <= MAX_LOGO,
      ({ byteLength }) => invalid(`at most ${MAX_LOGO} bytes, not ${byteLength}`)
    ),
    Effect.map((bytes) => ({ type, bytes }))
  )
}
