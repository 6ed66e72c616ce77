/** Every workflow of the worker. */
export { deliver } from "./deliver.ts"
export { firstAttempts } from "./firstAttempts.ts"
export { hold } from "./hold.ts"
export { notify } from "./notify.ts"
export { ping } from "./ping.ts"
export { recover } from "./recover.ts"
export { retain } from "./retention.ts"
export { sealStatements } from "./sealStatements.ts"
