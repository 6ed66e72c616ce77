/** Limits for both the sign-in library and the portal's routes. */

/** Length of a password, in characters. */
export const PASSWORD_MIN = 12,
  PASSWORD_MAX = 200
