/** A finding of `custody doctor`: what was checked, its state, and what to do. */

/** A finding. */
export interface Finding {
  /** What was checked, in a word or two. */
  readonly subject: string
  /** `fault`: the service cannot work. `notice`: it works, but the operator should know. */
  readonly state: "well" | "notice" | "fault"
  readonly says: string
  /** What to do, as a sentence; absent if there is nothing to do. */
  readonly advice?: string
  /** Whether the installation is not ready for production until this changes, although it works. */
  readonly unready?: true
  /** The exit code of this fault: 1 failed, 3 a setting, 5 a dependency is unavailable or a port is in use. */
  readonly code?: 1 | 3 | 5
}

/** Everything is fine. */
export const well = (subject: string, says: string): Finding => ({ subject, state: "well", says })

/** Not broken, but possibly not intended. */
export const notice = (subject: string, says: string, advice: string): Finding => ({ subject, state: "notice", says, advice })

/** Works, but not fit for production. */
export const unready = (subject: string, says: string, advice: string): Finding => ({ ...notice(subject, says, advice), unready: true })

/** Broken. */
export const fault = (subject: string, says: string, advice: string, code: 1 | 3 | 5): Finding => ({
  subject,
  state: "fault",
  says,
  advice,
  code
})

/** What has to change before production: faults first, each once. */
export const openPoints = (findings: ReadonlyArray<Finding>): ReadonlyArray<string> => [
  ...new Set(
    [...findings.filter(({ state }) => state === "fault"), ...findings.filter((finding) => finding.unready)].map(({ subject }) => subject)
  )
]

/** The exit code of all findings: settings first, because others may follow from them; 0 without faults. */
export const codeOf = (findings: ReadonlyArray<Finding>): 0 | 1 | 3 | 5 => {
  const codes = findings.flatMap(({ code, state }) => (state === "fault" && code !== undefined ? [code] : []))
  return ([3, 5, 1] as const).find((code) => codes.includes(code)) ?? 0
}

/** What went wrong, in a few words. */
export const why = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const code = "code" in error && typeof error.code === "string" ? error.code : ""
  const text = error.message === "" ? error.name : error.message
  return code === "" || text.includes(code) ? text : `${text} (${code})`
}
