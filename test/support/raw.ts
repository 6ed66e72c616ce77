/** HTTP as bytes, for requests that no client library would send. */
import * as net from "node:net"

export interface RawAnswer {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string
}

/** How long to wait for the first byte of a response, in ms. */
const FIRST_BYTE = 10_000

/** Sends the bytes on a new connection and reads until the server closes it, or has answered and is silent for `quiet` ms. */
export const sendRaw = (baseUrl: string, bytes: string | Uint8Array, quiet = 500): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(baseUrl)
    const socket = net.connect(Number(port), hostname, () => socket.write(bytes))
    const chunks: Array<Buffer> = []
    const done = () => {
      socket.destroy()
      resolve(parse(Buffer.concat(chunks).toString()))
    }
    socket.setTimeout(FIRST_BYTE)
    socket.on("timeout", done)
    socket.on("data", (chunk) => {
      if (chunks.length === 0) socket.setTimeout(quiet)
      chunks.push(Buffer.from(chunk))
    })
    socket.on("close", done)
    socket.on("error", (error) => (chunks.length === 0 ? reject(error) : done()))
  })

/** Sends a request that ends within its body, and waits until the server has closed the connection. */
export const cutOff = (baseUrl: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(baseUrl)
    const socket = net.connect(Number(port), hostname, () => socket.end('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"a":'))
    socket.resume()
    socket.on("error", reject)
    socket.on("close", () => resolve())
  })

const parse = (text: string): RawAnswer => {
  const end = text.indexOf("\r\n\r\n")
  const [first = "", ...lines] = text.slice(0, end < 0 ? text.length : end).split("\r\n")
  return {
    status: Number(first.split(" ")[1] ?? 0),
    headers: Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()])
    ),
    body: end < 0 ? "" : text.slice(end + 4)
  }
}

/** A GET of a target exactly as written, its bytes as latin1, with an optional key and more header lines. */
export const rawGet = (
  baseUrl: string,
  target: string,
  options: { readonly key?: string; readonly method?: string; readonly lines?: ReadonlyArray<string> } = {}
): Promise<RawAnswer> =>
  sendRaw(
    baseUrl,
    Buffer.from(
      [
        `${options.method ?? "GET"} ${target} HTTP/1.1`,
        "Host: localhost",
        "Connection: close",
        ...(options.key === undefined ? [] : [`Authorization: Bearer ${options.key}`]),
        ...(options.lines ?? []),
        "",
        ""
      ].join("\r\n"),
      "latin1"
    )
  )
