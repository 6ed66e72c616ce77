/** Known vulnerabilities of the locked packages, as the registry lists them: `bun audit`. */
import { root } from "./packages.ts"

/** How long the registry may take to answer, in ms. */
const PATIENCE_MS = 30_000

/** The registry's response, or that it could not be reached. */
export type Audit =
  | { readonly state: "clean" }
  | { readonly state: "vulnerable"; readonly advisories: ReadonlyArray<string> }
  | { readonly state: "unreachable"; readonly why: string }

interface Advisory {
  readonly severity: string
  readonly title: string
  readonly url: string
}

const parsed = (text: string): Readonly<Record<string, ReadonlyArray<Advisory>>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    // The registry defines the format: lists of advisories by package name.
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, ReadonlyArray<Advisory>>>) : undefined
  } catch {
    return undefined
  }
}

/** Queries the registry that the environment names. */
export const audit = async (env: Readonly<Record<string, string | undefined>> = process.env): Promise<Audit> => {
  const child = Bun.spawn([process.execPath, "audit", "--json"], {
    cwd: root,
    env: { ...env },
    stdout: "pipe",
    stderr: "pipe",
    timeout: PATIENCE_MS
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  const found = parsed(stdout)
  if (found === undefined) return { state: "unreachable", why: stderr.trim().split("\n").at(-1) || "no answer" }
  const advisories = Object.entries(found).flatMap(([name, list]) =>
    list.map(({ severity, title, url }) => `${name}: ${severity}, ${title} (${url})`)
  )
  return advisories.length === 0 ? { state: "clean" } : { state: "vulnerable", advisories }
}
