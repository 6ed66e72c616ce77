/** The roles of a process. */
export const roles = ["api", "worker", "dispatcher"] as const
export type Role = (typeof roles)[number]
