/** What `custody doctor` finds: one thing that it looked at, how that is, and what to do about it. */

/** A finding. */
export interface Finding {
  /** What was looked at, in a word or two. */
  readonly subject: string
  /** `fault`: the service cannot work so. `notice`: it works, and somebody should know. */
  readonly state: "well" | "notice" | "fault"
  readonly says: string
  /** What to do, as a sentence; absent where nothing is to be done. */
  readonly advice?: string
  /** The exit code that this fault stands for: 1 failed, 3 a setting, 5 something is away or a port is taken. */
  readonly code?: 1 | 3 | 5
}

/** As it should be. */
export const well = (subject: string, says: string): Finding => ({ subject, state: "well", says })

/** Nothing is broken, and it may not be what is wanted. */
export const notice = (subject: string, says: string, advice: string): Finding => ({ subject, state: "notice", says, advice })

/** Broken. */
export const fault = (subject: string, says: string, advice: string, code: 1 | 3 | 5): Finding => ({
  subject,
  state: "fault",
  says,
  advice,
  code
})

/** The exit code of all findings together: a setting first, because the others may follow from it; 0 when nothing is at fault. */
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
