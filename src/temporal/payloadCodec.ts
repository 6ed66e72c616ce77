/**
 * The payload codec: what workflows take and return is AES-256-GCM where Temporal stores it, under a key derived from
 * `MASTER_KEY`. It is between the converter and the wire, in clients and in workers; workflow code sees plain values.
 * Ids of workflows, their types, search attributes and times stay readable, because Temporal works with them.
 *
 * What was stored without the codec is read as it is, and what was stored with it is read after it was turned off, so the
 * setting can change while deliveries run. It keeps payloads secret; it does not tell who wrote them.
 * Decision D-35.
 */
import type { Payload, PayloadCodec } from "@temporalio/common"
import { temporal } from "@temporalio/proto"
import type { Sealing } from "../crypto/MasterKey.ts"

const { Payload: ProtoPayload } = temporal.api.common.v1

/** `encoding` of a sealed payload, as Temporal's own samples name it. */
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

/** Opens sealed payloads, under the current or the previous master key; seals when `sealing`. */
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
