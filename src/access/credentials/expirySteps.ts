/** When people and programs are warned that a key expires. C-13. */

/** Days before the expiry at which its user and the organization's owners are warned, the earliest first. */
export const EXPIRY_STEPS = [30, 7, 1] as const

/** The first of them; from then on, responses say when the key expires. */
export const [FIRST_STEP] = EXPIRY_STEPS
