/**
 * A load generator in a separate process that posts records one by one, over kept connections and raw sockets, so that it
 * uses as little CPU as possible. Without `perSecond`, each connection sends its next record when the last one has its
 * response. With it, record n is due at the start + n / perSecond, whatever the state of earlier ones, and is sent over a
 * free connection or a new one.
 *
 * `bun bench/support/post.ts <json>` with {@link Ask} prints {@link Answer}.
 */
import { AnswerReader } from "./answer.ts"
import { transactionLine } from "./transactions.ts"

/** The records to post and their address. */
export interface Ask {
  readonly port: number
  readonly path: string
  readonly token: string
  readonly vaultId: string
  /** Number of the first transaction, and their count. */
  readonly first: number
  readonly count: number
  /** Maximum number of connections. */
  readonly connections: number
  readonly perSecond?: number
}

/** For each record in order: when it was due and when it was answered, in epoch milliseconds, and the status; 0 if the connection broke. */
export type Answer = ReadonlyArray<readonly [due: number, answered: number, status: number]>

/** The server closes idle connections after some seconds, so a connection is not reused after this idle time, in ms. */
const IDLE_MS = 1_000

const { connections, count, first, path, perSecond, port, token, vaultId }: Ask = JSON.parse(process.argv[2] ?? "{}")
const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/x-ndjson\r\nContent-Length: `
const now = () => performance.timeOrigin + performance.now()

const dues: Array<number> = []
const answers: Array<readonly [due: number, answered: number, status: number]> = []
let finished = 0
let done = () => {}
const all = new Promise<void>((resolve) => {
  done = resolve
})

interface Connection {
  /** Index of the record in progress; -1 without one. */
  index: number
  idleSince: number
  readonly answer: AnswerReader
}
type Socket = Bun.Socket<Connection>

const free: Array<Socket> = []
const waiting: Array<number> = []
let open = 0,
  next = 0

const send = (socket: Socket, index: number) => {
  socket.data = { index, idleSince: 0, answer: new AnswerReader() }
  const body = transactionLine(first + index, vaultId)
  socket.write(`${head}${body.length}\r\n\r\n${body}`)
}

/** The next record for a connection: one that waits for a connection, or, in a closed loop, the next one. */
const nextIndex = (): number | undefined => {
  const index = waiting.shift()
  if (index !== undefined || perSecond !== undefined || next >= count) return index
  dues[next] = now()
  return next++
}

const finish = (index: number, status: number) => {
  answers[index] = [dues[index] ?? 0, now(), status]
  if (++finished === count) done()
}

const idle = (socket: Socket) => {
  const index = nextIndex()
  if (index !== undefined) return send(socket, index)
  socket.data = { index: -1, idleSince: now(), answer: new AnswerReader() }
  free.push(socket)
}

const closed = (socket: Socket) => {
  open--
  const place = free.indexOf(socket)
  if (place >= 0) free.splice(place, 1)
  if (socket.data.index >= 0) finish(socket.data.index, 0)
  socket.data.index = -1
  const index = nextIndex()
  if (index !== undefined) connect(index)
}

const connect = (index: number) => {
  open++
  Bun.connect<Connection>({
    hostname: "127.0.0.1",
    port,
    data: { index, idleSince: 0, answer: new AnswerReader() },
    socket: {
      open: (socket) => send(socket, index),
      data(socket, chunk) {
        const state = socket.data
        if (!state.answer.take(chunk)) return
        finish(state.index, state.answer.status)
        state.index = -1
        // A server announces that it will close the connection after its response; the next record uses another one.
        if (/connection: close/i.test(state.answer.head)) socket.end()
        else idle(socket)
      },
      close: closed
    }
  }).catch(() => {
    open--
    finish(index, 0)
  })
}

/** Sends a due record over the most recently used connection, a new one, or the next free one. */
const dispatch = (index: number) => {
  for (let socket = free.pop(); socket !== undefined; socket = free.pop()) {
    if (now() - socket.data.idleSince < IDLE_MS) return send(socket, index)
    socket.end()
  }
  if (open < connections) connect(index)
  else waiting.push(index)
}

if (perSecond === undefined) {
  for (let connection = 0; connection < Math.min(connections, count); connection++) {
    const index = nextIndex()
    if (index !== undefined) connect(index)
  }
} else {
  const begun = now()
  for (let index = 0; index < count; index++) {
    const due = begun + (index * 1_000) / perSecond
    if (due > now()) await Bun.sleep(due - now())
    dues[index] = due
    dispatch(index)
  }
}
await all
await Bun.write(Bun.stdout, JSON.stringify(answers))
process.exit(0)
