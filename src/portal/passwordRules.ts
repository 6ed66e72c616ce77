/** Bounds that both the sign-in library and the portal's own paths hold to. */

/** Characters of a password. */
export const PASSWORD_MIN = 12,
  PASSWORD_MAX = 200
