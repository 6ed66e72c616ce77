/**
 * Posts events to a developer's server, with the headers of a real delivery. It connects only to addresses of this
 * machine and of private networks unless public ones are allowed. The host name is resolved and checked for each attempt,
 * and the connection goes to the checked address.
 */
import * as dns from "node:dns/promises"
import * as http from "node:http"
import * as https from "node:https"
import { Redacted } from "effect"
import { descriptive, headers } from "../../../delivery/deliveries/signatureHeaders.ts"
import * as Format from "../../../runtime/settings/Format.ts"
import * as Id from "../../../values/Id.ts"
import { Usage } from "../exit.ts"

/** Response timeout in ms, the same as for an endpoint. */
const DEADLINE = 10_000

/** An event to post. */
export interface Posted {
  readonly id: string
  readonly kind: string
  readonly payload: unknown
  /** Whether it is a sample event. */
  readonly test?: boolean
}

/** The outcome of an attempt to post an event. */
export interface Forwarded {
  /** The number in `webhook-sequence`, from 1; the same for all attempts. */
  readonly sequence: number
  /** The number of the attempt, from 1. */
  readonly attempt: number
  /** Null without a response. */
  readonly status: number | null
  readonly latencyMs: number
  /** Why there was no response. */
  readonly error?: string
}

/** Whether the server accepted the event. */
export const isAccepted = ({ status }: Forwarded): boolean => status !== null && status >= 200 && status < 300

/** Whether an address belongs to this machine or to a private network. */
const isNear = (text: string): boolean => ["loopback", "private", "uniqueLocal"].includes(Format.address(text)?.range() ?? "")

/** The addresses of a host; fails if one of them is public and that is not allowed. */
const addressesOf = async ({ hostname }: URL, allowPublic: boolean): Promise<ReadonlyArray<string>> => {
  const host = hostname.replace(/^\[|\]$/g, "")
  const found = Format.address(host) === undefined ? (await dns.lookup(host, { all: true })).map(({ address }) => address) : [host]
  const far = found.find((address) => !isNear(address))
  if (far !== undefined && !allowPublic)
    throw new Usage({ message: `${hostname} is ${far}, which is public: allow it with --allow-public` })
  return found
}

const post = (url: URL, address: string, sent: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<number> =>
  new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? https : http).request(
      {
        method: "POST",
        host: address,
        port: url.port === "" ? undefined : url.port,
        path: `${url.pathname}${url.search}`,
        headers: { ...sent, host: url.host, "content-length": Buffer.byteLength(body) },
        ...(Format.address(url.hostname) === undefined ? { servername: url.hostname } : {}),
        signal,
        agent: false
      },
      (response) => {
        resolve(response.statusCode ?? 0)
        response.on("error", () => {})
        response.resume()
      }
    )
    request.on("error", reject)
    request.end(body)
  })

const codeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return "code" in error && typeof error.code === "string" ? error.code : error.message
}

/** Prepares deliveries of events to a URL, each of which makes its attempts; fails at once if the URL is not allowed. */
export const forwarder = async (target: string, secret: string, allowPublic: boolean) => {
  if (!URL.canParse(target) || !/^https?:$/.test(new URL(target).protocol))
    throw new Usage({ message: `--forward-to is “${target}”, expected a URL such as http://localhost:3000/hook.` })
  const url = new URL(target)
  await addressesOf(url, allowPublic).catch((error: unknown) => {
    const why = codeOf(error) === "ENOTFOUND" ? `${url.hostname} does not resolve` : codeOf(error)
    throw new Usage({ message: `--forward-to cannot be used: ${why}.` })
  })
  let sequence = 0

  const attempt = async (
    { id, kind, payload, test }: Posted,
    delivery: { readonly deliveryId: string; readonly sequence: number },
    attempt: number
  ): Promise<Forwarded> => {
    const body = JSON.stringify(payload)
    const startedAt = performance.now()
    const timestamp = Math.floor(Date.now() / 1_000)
    const sent = {
      ...descriptive({ ...delivery, attempt, kind, test }),
      ...headers({ id, timestamp, body, secrets: [Redacted.make(secret)] })
    }
    const forwarded = (more: Pick<Forwarded, "status" | "error">): Forwarded => ({
      sequence: delivery.sequence,
      attempt,
      latencyMs: Math.round(performance.now() - startedAt),
      ...more
    })
    const late = AbortSignal.timeout(DEADLINE)
    try {
      const addresses = await addressesOf(url, allowPublic)
      for (const [index, address] of addresses.entries()) {
        try {
          return forwarded({ status: await post(url, address, sent, body, late) })
        } catch (error) {
          // A name such as localhost has an address of each family, and a server may listen on only one of them.
          if (codeOf(error) !== "ECONNREFUSED" || index === addresses.length - 1) throw error
        }
      }
      return forwarded({ status: null, error: "no address" })
    } catch (error) {
      return forwarded({ status: null, error: late.aborted ? `no response within ${DEADLINE / 1_000} s` : codeOf(error) })
    }
  }

  return (event: Posted) => {
    const delivery = { deliveryId: Id.make("del"), sequence: ++sequence }
    return (number: number) => attempt(event, delivery, number)
  }
}
