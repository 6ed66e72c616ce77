/**
 * The demo's consumer: an HTTPS endpoint on loopback that does what a consumer should. It verifies the signature on the
 * raw body with its secrets, rejects invalid ones, and answers. One of its paths fails the first attempt of each
 * delivery, to show retries, and is behind a gateway that demands a key; each can be taken down, to show holds. A third path
 * accepts everything without verification, for webhooks that a newcomer makes.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect, Queue, Schedule } from "effect"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { portInUse } from "../../runtime/embedded/Process.ts"
import { make } from "./certificate.ts"
import { signedBy } from "./verifyDelivery.ts"

/** Paths of the receiver. */
export const LEDGER = "/hooks/ledger",
  BACK_OFFICE = "/hooks/back-office",
  PLAY = "/play"

/** The header in which the gateway of a path demands its key. */
export const GATEWAY_HEADER = "x-api-key"

/** A received request. */
export interface Received {
  readonly path: string
  readonly eventId: string
  readonly deliveryId: string
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** Whether it is a ping, which no list of deliveries has. */
  readonly ping: boolean
  readonly body: string
  /** Whether each secret of the path signed it, newest first; of no request that the gateway refused. */
  readonly signed: ReadonlyArray<boolean>
  /** The status of the response. */
  readonly status: number
}

/** The port that webhooks may use without a setting, if it is free. */
const PREFERRED_PORT = 8443

const statusOf = (pathname: string, attempt: number, signed: ReadonlyArray<boolean>, down: boolean): number => {
  if (pathname === PLAY) return 200
  if (!signed.includes(true)) return 401
  if (down) return 503
  return pathname === BACK_OFFICE && attempt === 1 ? 503 : 200
}

/** Opens the receiver until the scope closes. */
export const open = Effect.gen(function* () {
  const dataDir = yield* DataDir
  const { authority, certificate, key } = yield* Effect.promise(make)
  const caFile = dataDir.at("demo", "ca.pem")
  fs.mkdirSync(path.dirname(caFile), { recursive: true })
  fs.writeFileSync(caFile, authority)

  const received = yield* Queue.unbounded<Received>()
  let unshown = 0
  const secrets = new Map<string, ReadonlyArray<string> | Promise<ReadonlyArray<string>>>()
  const keys = new Map<string, string>()
  const away = new Set<string>()
  const preferredTaken = yield* portInUse(PREFERRED_PORT)

  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      Bun.serve({
        hostname: "127.0.0.1",
        port: preferredTaken ? 0 : PREFERRED_PORT,
        tls: { cert: certificate, key },
        fetch: async (request) => {
          // A browser that looks at the address is not a delivery.
          if (request.method !== "POST") return new Response("Create a webhook with this URL.", { status: 405, headers: { allow: "POST" } })
          const { pathname } = new URL(request.url)
          const body = await request.text()
          const headers = Object.fromEntries(request.headers.entries())
          const isLetIn = keys.get(pathname) === undefined || headers[GATEWAY_HEADER] === keys.get(pathname)
          const signed = ((await secrets.get(pathname)) ?? []).map((secret) => isLetIn && signedBy(secret, headers, body))
          const attempt = Number(headers["x-service-attempt"] ?? 0)
          const status = statusOf(pathname, attempt, signed, away.has(pathname))
          unshown++
          received.unsafeOffer({
            path: pathname,
            eventId: headers["webhook-id"] ?? "",
            deliveryId: headers["x-service-delivery-id"] ?? "",
            attempt,
            ping: headers["webhook-sequence"] === undefined,
            body,
            signed,
            status
          })
          return new Response(status === 200 ? "ok" : status === 503 ? "out of order" : "signature not verified", { status })
        }
      })
    ),
    (server) => Effect.promise(() => server.stop(true))
  )

  return {
    caFile,
    port: server.port ?? PREFERRED_PORT,
    url: (pathname: string) => `https://localhost:${server.port}${pathname}`,
    /** The secrets that verify requests to a path, newest first; requests wait for those that are not known yet. */
    trust: (pathname: string, live: ReadonlyArray<string> | Promise<ReadonlyArray<string>>) => void secrets.set(pathname, live),
    /** Puts a gateway in front of a path, which demands this key. */
    demand: (pathname: string, key: string) => void keys.set(pathname, key),
    /** Takes a path down, where every request is then answered 503, or brings it back. */
    down: (pathname: string, down: boolean) => void (down ? away.add(pathname) : away.delete(pathname)),
    /** Shows every request, in the order of arrival. */
    showEach: <E, R>(show: (one: Received) => Effect.Effect<void, E, R>) =>
      Effect.forever(
        Effect.flatMap(Queue.take(received), (one) =>
          Effect.ensuring(
            show(one),
            Effect.sync(() => unshown--)
          )
        )
      ),
    /** Waits until every request that arrived is shown. */
    allShown: Effect.repeat(
      Effect.sync(() => unshown),
      { until: (count) => count === 0, schedule: Schedule.spaced("50 millis") }
    )
  }
})

/** The open receiver. */
export type Receiver = Effect.Effect.Success<typeof open>
