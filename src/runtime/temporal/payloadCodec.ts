/**
 * The payload codec: encrypts workflow inputs and results with AES-256-GCM before Temporal stores them, with a key
 * derived from `MASTER_KEY`. It sits between the converter and the wire, in clients and workers; workflow code sees plain
 * values. Workflow ids and types, search attributes and times stay readable, because Temporal needs them.
 *
 * Plain payloads are still read when the codec is on, and encrypted ones when it is off, so the setting can change while
 * deliveries run. It keeps payloads secret; it does not authenticate their author. Decision D-35.
 */
import type { Payload, PayloadCodec } from "@temporalio/common"
import { temporal } from "@temporalio/proto"
import type { Sealing } from "../crypto/MasterKey.ts"

const { Payload: ProtoPayload } = temporal.api.common.v1

/** `encoding` of an encrypted payload, as in Temporal's own samples. */
const ENCODING = "binary/encrypted"
const metadata = { encoding: Buffer.from(ENCODING), "encryption-cipher": Buffer.from("aes-256-gcm") }

const isSealed = (payload: Payload): boolean => {
  const encoding = payload.metadata?.["encoding"]
  return encoding != null && Buffer.from(encoding).toString() === ENCODING
}

const open = (master: Sealing, payload: Payload): Payload => {
  const plain = master.open("temporal-payload", Buffer.from(payload.data ?? []), "")
  if (plain !== undefined) return ProtoPayload.decode(plain)
  throw new Error("A Temporal payload is encrypted under a key that is neither MASTER_KEY nor MASTER_KEY_PREVIOUS")
}

/** Decrypts payloads with the current or the previous master key; encrypts if `sealing`. */
export const payloadCodec = (master: Sealing, sealing: boolean): PayloadCodec => ({
  encode: async (payloads) =>
    sealing
      ? payloads.map((payload) => ({
          metadata,
          data: master.seal("temporal-payload", Buffer.from(ProtoPayload.encode(payload).finish()), "")
        }))
      : payloads,
  decode: async (payloads) => payloads.map((payload) => (isSealed(payload) ? open(master, payload) : payload))
})
