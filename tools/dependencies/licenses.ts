/** Which licenses a dependency may have: those that let the service be used, changed and passed on under Apache-2.0. */
import type { Package } from "./packages.ts"

/** SPDX identifiers of licenses that are taken from anybody. */
export const ALLOWED: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "Unlicense",
  "Zlib"
])

/** Packages whose license is another one or not named in their package.json, each with why it is taken. */
export const EXCEPTIONS: Readonly<Record<string, { readonly license: string; readonly why: string }>> = {
  "@fontsource-variable/inter": { license: "OFL-1.1", why: "a typeface, served as it is" },
  "@fontsource/ibm-plex-mono": { license: "OFL-1.1", why: "a typeface, served as it is" },
  "axe-core": { license: "MPL-2.0", why: "used by tests, unchanged" },
  "caniuse-lite": { license: "CC-BY-4.0", why: "data that the workflow bundler reads; no part of what is passed on" },
  unionfs: { license: "Unlicense", why: "its LICENSE file says so; its package.json does not" }
}

/** The license that a package is taken under; undefined when none is known. */
export const licenseOf = ({ license, name }: Package): string | undefined => license ?? EXCEPTIONS[name]?.license

/** Whether an SPDX expression of `AND`, `OR` and parentheses can be met by allowed licenses alone. */
export const isAllowed = (expression: string): boolean => {
  const bare = expression.trim().replace(/^\(([^()]*)\)$/, "$1")
  // OR binds less than AND; what is nested deeper is for a person to look at.
  if (/[()]/.test(bare)) return false
  return bare.split(" OR ").some((choice) => choice.split(" AND ").every((one) => ALLOWED.has(one.trim())))
}

/** What is installed under a license that is not on the list, as lines to show. */
export const refused = (packages: Iterable<Package>): ReadonlyArray<string> =>
  [...packages].flatMap((one) => {
    const license = licenseOf(one)
    const excepted = EXCEPTIONS[one.name]
    if (!one.installed || (license !== undefined && (isAllowed(license) || license === excepted?.license))) return []
    return [`${one.name} ${one.version}: ${license ?? "no license in its package.json"}`]
  })
