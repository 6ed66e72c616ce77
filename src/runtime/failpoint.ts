/**
 * Places between two statements where a test can kill the process, as by `kill -9`. In the product nothing happens there.
 */
let reached: (name: string) => void = () => {}

/** Marks the place `name`. */
export const failpoint = (name: string): void => reached(name)

/** Calls `reach` synchronously whenever a place is reached, with its name. For tests. */
export const onFailpoint = (reach: (name: string) => void): void => {
  reached = reach
}
