/** Every workflow of the worker. */
export { deliver } from "./deliver.ts"
export { notify, ping, retain } from "./others.ts"
