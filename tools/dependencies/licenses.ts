/** Allowed licenses of dependencies: those that let the service be used, changed and distributed under Apache-2.0. */
import type { Package } from "./packages.ts"

/** SPDX identifiers of licenses that are allowed for any package. */
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

/** Packages with another license, or with none in their package.json, each with the reason why it is allowed. */
export const EXCEPTIONS: Readonly<Record<string, { readonly license: string; readonly why: string }>> = {
  "@fontsource-variable/inter": { license: "OFL-1.1", why: "a typeface, served as it is" },
  "@fontsource/ibm-plex-mono": { license: "OFL-1.1", why: "a typeface, served as it is" },
  "axe-core": { license: "MPL-2.0", why: "used by tests, unchanged" },
  "caniuse-lite": { license: "CC-BY-4.0", why: "data that the workflow bundler reads; no part of what is passed on" },
  unionfs: { license: "Unlicense", why: "its LICENSE file says so; its package.json does not" }
}

/** The license under which a package is used; undefined if none is known. */
export const licenseOf = ({ license, name }: Package): string | undefined => license ?? EXCEPTIONS[name]?.license

/** Whether an SPDX expression of `AND`, `OR` and parentheses can be satisfied by allowed licenses alone. */
export const isAllowed = (expression: string): boolean => {
  const bare = expression.trim().replace(/^\(([^()]*)\)$/, "$1")
  // OR binds less tightly than AND; deeper nesting needs a person's review.
  if (/[()]/.test(bare)) return false
  return bare.split(" OR ").some((choice) => choice.split(" AND ").every((one) => ALLOWED.has(one.trim())))
}

/** Installed packages whose license is not on the list, as lines to print. */
export const refused = (packages: Iterable<Package>): ReadonlyArray<string> =>
  [...packages].flatMap((one) => {
    const license = licenseOf(one)
    const excepted = EXCEPTIONS[one.name]
    if (!one.installed || (license !== undefined && (isAllowed(license) || license === excepted?.license))) return []
    return [`${one.name} ${one.version}: ${license ?? "no license in its package.json"}`]
  })
