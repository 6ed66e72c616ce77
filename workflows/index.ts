/** Every workflow of the worker. */
export { announceExpiringKeys } from "./announceExpiringKeys.ts"
export { deliver } from "./deliver.ts"
export { drain } from "./drain.ts"
export { notify } from "./notify.ts"
export { ping } from "./ping.ts"
export { recover } from "./recover.ts"
export { retain } from "./retain.ts"
export { sealStatements } from "./sealStatements.ts"
