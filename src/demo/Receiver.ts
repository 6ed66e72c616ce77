/**
 * The demo's consumer: an HTTPS endpoint on loopback that does what a consumer should. It verifies the signature on
 * the raw body with the secrets that it was given, refuses what does not verify, and answers. One of its paths is
 * out of order at the first attempt of each delivery, to show what happens then.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect, Queue } from "effect"
import { DataDir } from "../embedded/DataDir.ts"
import { portInUse } from "../embedded/Process.ts"
import { make } from "./certificate.ts"
import { signedBy } from "./verifyDelivery.ts"

/** Paths of the receiver. */
export const LEDGER = "/hooks/ledger",
  BACK_OFFICE = "/hooks/back-office"

/** A request that was received. */
export interface Received {
  readonly path: string
  readonly eventId: string
  readonly deliveryId: string
  /** Number of the attempt, from 1. */
  readonly attempt: number
  readonly body: string
  /** Whether each of the secrets that the receiver holds for the path signed it, newest first. */
  readonly signed: ReadonlyArray<boolean>
  /** What it was answered. */
  readonly status: number
}

/** The port that webhooks may have without a setting, where it is free. */
const PREFERRED_PORT = 8443

const statusOf = (pathname: string, attempt: number, signed: ReadonlyArray<boolean>): number => {
  if (!signed.includes(true)) return 401
  return pathname === BACK_OFFICE && attempt === 1 ? 503 : 200
}

/** Opens the receiver for as long as the scope is. */
export const open = Effect.gen(function* () {
  const dataDir = yield* DataDir
  const { authority, certificate, key } = yield* Effect.promise(make)
  const caFile = dataDir.at("demo", "ca.pem")
  fs.mkdirSync(path.dirname(caFile), { recursive: true })
  fs.writeFileSync(caFile, authority)

  const received = yield* Queue.unbounded<Received>()
  const secrets = new Map<string, ReadonlyArray<string>>()
  const preferredTaken = yield* portInUse(PREFERRED_PORT)

  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      Bun.serve({
        hostname: "127.0.0.1",
        port: preferredTaken ? 0 : PREFERRED_PORT,
        tls: { cert: certificate, key },
        fetch: async (request) => {
          const { pathname } = new URL(request.url)
          const body = await request.text()
          const headers = Object.fromEntries(request.headers.entries())
          const signed = (secrets.get(pathname) ?? []).map((secret) => signedBy(secret, headers, body))
          const attempt = Number(headers["x-service-attempt"] ?? 0)
          const status = statusOf(pathname, attempt, signed)
          received.unsafeOffer({
            path: pathname,
            eventId: headers["webhook-id"] ?? "",
            deliveryId: headers["x-service-delivery-id"] ?? "",
            attempt,
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
    /** The secrets by which requests to a path are verified, newest first. */
    trust: (pathname: string, live: ReadonlyArray<string>) => void secrets.set(pathname, live),
    /** The next request, in the order of arrival. */
    next: Queue.take(received)
  }
})

/** The receiver while it is open. */
export type Receiver = Effect.Effect.Success<typeof open>
