/**
 * The client of the custody API for TypeScript and JavaScript: plain promises, no dependencies. {@link verifySignature}
 * verifies deliveries and returns typed events; {@link verifyEvents} proves that none is missing.
 *
 * ```ts
 * const custody = createClient({ baseUrl: "https://custody.example.com", apiKey: "cds_…" })
 * for await (const transaction of custody.listTransactions(vaultId, { status: "confirmed" })) …
 * ```
 */
export * from "./browser.ts"
export { SignatureError, type SignatureOptions, verifySignature } from "./signature.ts"
export {
  chainHash,
  emptyChain,
  type KeptCheckpoint,
  NotVerifiable,
  type PublishedKeys,
  type SignedCheckpoint,
  type Verification,
  type Verifier,
  verifyCheckpoint,
  verifyEvents
} from "./verifyEvents.ts"
