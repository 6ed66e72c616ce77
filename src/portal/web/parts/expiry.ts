/** When a key expires, in words, and how urgent that is: as in e-mails, from 30 days before. C-13. */
import { left } from "./Time.tsx"

const SOON_MS = 30 * 86_400_000

/** Whether a key has expired, expires soon, later, or never. */
export const expiryOf = (expiresAt: string | null, now: number) => {
  if (expiresAt === null) return { state: "never", words: "No expiry" } as const
  const ms = Date.parse(expiresAt) - now
  if (ms <= 0) return { state: "expired", words: "Expired" } as const
  return { state: ms > SOON_MS ? "later" : "soon", words: `Expires in ${left(expiresAt, now)}` } as const
}
