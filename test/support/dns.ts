/**
 * A DNS server on UDP with scripted responses, for rare behavior of real ones: different responses each time, none,
 * refusals, loops. Unscripted names do not exist, but the root does.
 */
import * as dgram from "node:dgram"
import ipaddr from "ipaddr.js"

/** The response for a name. `silent`: none. */
export interface Reply {
  readonly a?: ReadonlyArray<string>
  readonly aaaa?: ReadonlyArray<string>
  /** The name that the addresses belong to, when it is another. */
  readonly cname?: string
  /** Response code: 2 SERVFAIL, 3 NXDOMAIN. */
  readonly rcode?: number
  readonly silent?: boolean
  /** TTL in seconds; default 0. */
  readonly ttl?: number
}

const TYPES = { 1: "a", 5: "cname", 28: "aaaa" } as const
type Type = (typeof TYPES)[keyof typeof TYPES]

const nameBytes = (name: string) =>
  Buffer.concat([...name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])), Buffer.from([0])])

const readName = (message: Buffer): { readonly name: string; readonly end: number } => {
  const labels: Array<string> = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.subarray(at + 1, at + 1 + length).toString("latin1"))
    at += 1 + length
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 }
}

/** The offset of the question's name in a response. */
const QUESTION = Buffer.from([0xc0, 0x0c])

/** A resource record. */
const record = (type: number, data: Buffer, ttl: number, owner = QUESTION) => {
  const head = Buffer.alloc(10)
  head.writeUInt16BE(type, 0)
  head.writeUInt16BE(1, 2)
  head.writeUInt32BE(ttl, 4)
  head.writeUInt16BE(data.length, 8)
  return Buffer.concat([owner, head, data])
}

const recordsOf = (reply: Reply, type: Type | undefined): ReadonlyArray<Buffer> => {
  const owner = reply.cname === undefined ? QUESTION : nameBytes(reply.cname)
  const ttl = reply.ttl ?? 0
  const alias = reply.cname === undefined ? [] : [record(5, owner, ttl)]
  const addresses = (type === "a" ? reply.a : type === "aaaa" ? reply.aaaa : undefined) ?? []
  return [...alias, ...addresses.map((text) => record(type === "a" ? 1 : 28, Buffer.from(ipaddr.parse(text).toByteArray()), ttl, owner))]
}

export class Dns {
  /** While this is true, no query has a response, not even one for the root. */
  silent = false
  readonly #socket = dgram.createSocket("udp4")
  readonly #scripts = new Map<string, (count: number, type: "a" | "aaaa") => Reply>()
  readonly #counts = new Map<string, number>()

  /** Queries for a name, of either type. */
  asked(name: string): number {
    return (this.#counts.get(`${name} a`) ?? 0) + (this.#counts.get(`${name} aaaa`) ?? 0)
  }

  /** Sets the response for a name; `count` is the number of the query of this type, from 1. */
  on(name: string, script: Reply | ((count: number, type: "a" | "aaaa") => Reply)): void {
    this.#scripts.set(name.toLowerCase(), typeof script === "function" ? script : () => script)
  }

  async open(): Promise<void> {
    this.#socket.on("message", (message, from) => {
      const answer = this.#answer(message)
      if (answer !== undefined) this.#socket.send(answer, from.port, from.address)
    })
    await new Promise<void>((resolve) => this.#socket.bind(0, "127.0.0.1", resolve))
  }

  /** `WEBHOOK_DNS_SERVERS`. */
  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  #answer(message: Buffer): Buffer | undefined {
    const { end, name } = readName(message)
    const code = message.readUInt16BE(end)
    const type = TYPES[code as keyof typeof TYPES] as Type | undefined
    const asked = type === "aaaa" ? "aaaa" : "a"
    const count = (this.#counts.get(`${name} ${asked}`) ?? 0) + 1
    this.#counts.set(`${name} ${asked}`, count)
    const reply = this.#scripts.get(name)?.(count, asked) ?? { rcode: name === "" ? 0 : 3 }
    if (this.silent || reply.silent === true) return undefined
    const records = recordsOf(reply, type)
    const head = Buffer.alloc(12)
    message.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8580 | (reply.rcode ?? 0), 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(records.length, 6)
    return Buffer.concat([head, message.subarray(12, end + 4), ...records])
  }

  close(): void {
    this.#socket.close()
  }
}
