/** Declaration and readers of settings: a reader returns the value, or what it expected. */
import { Duration, Either, Redacted } from "effect"
import * as Format from "./Format.ts"

/** A setting: its variable, its meaning, and its reader. */
export interface Setting<A> {
  readonly name: string
  /** The text that is read if the variable is unset; null means "not set". */
  readonly fallback: string | null
  /** What the table shows as the default if the fallback's text would not explain itself. */
  readonly shown?: string
  readonly meaning: string
  readonly secret: boolean
  readonly read: (text: string) => Format.Read<A>
}

/** A setting that always has a value. */
export const setting = <A>(
  name: string,
  fallback: string,
  meaning: string,
  read: (text: string) => Format.Read<A>,
  shown?: string
): Setting<A> => ({ name, fallback, meaning, read, secret: false, ...(shown === undefined ? {} : { shown }) })

/** A setting that may be absent. */
export const optional = <A>(
  name: string,
  shown: string,
  meaning: string,
  read: (text: string) => Format.Read<A>
): Setting<A | undefined> => ({
  name,
  fallback: null,
  shown,
  meaning,
  read,
  secret: false
})

/** A setting that is never shown. */
export const secret = <A>(
  name: string,
  shown: string,
  meaning: string,
  read: (text: string) => Format.Read<A>
): Setting<Redacted.Redacted<A> | undefined> => ({
  name,
  fallback: null,
  shown,
  meaning,
  secret: true,
  read: (text) => Either.map(read(text), (value) => Redacted.make(value))
})

/** Any text. */
export const text = (value: string): Format.Read<string> => (value.trim() === "" ? Either.left("some text") : Either.right(value.trim()))

/** A port; 0 for any free port. */
export const port = Format.integer(0, 65_535)

/** Whether user and password of a URL can be read in one way only: without a separator of URLs, and with valid escapes. */
const isEncoded = (value: string): boolean => {
  const [, credentials = ""] = /^[^:/?#]+:\/\/(.*)@/s.exec(value) ?? []
  try {
    decodeURIComponent(credentials)
  } catch {
    return false
  }
  return !/[/?#@]/.test(credentials)
}

/** A URL of one of these schemes. */
export const url =
  (...schemes: ReadonlyArray<string>) =>
  (value: string): Format.Read<string> => {
    const expected = `a URL that starts with ${schemes.map((_) => `${_}://`).join(" or ")}`
    if (!isEncoded(value)) return Either.left(`${expected}, with % / ? # and @ in user and password percent-encoded (% as %25, @ as %40)`)
    return URL.canParse(value) && schemes.includes(new URL(value).protocol.replace(":", "")) ? Either.right(value) : Either.left(expected)
  }

/** A URL of one of these schemes for which user and password have no meaning. */
export const plainUrl =
  (...schemes: ReadonlyArray<string>) =>
  (value: string): Format.Read<string> =>
    Either.filterOrLeft(
      url(...schemes)(value),
      (read) => new URL(read).username === "" && new URL(read).password === "",
      () => "a URL without user and password"
    )

/** 32 bytes in base64. */
export const masterKey = (value: string): Format.Read<Buffer> => {
  const bytes = Buffer.from(value, "base64")
  return bytes.length === 32 && /^[A-Za-z0-9+/_=-]+$/.test(value)
    ? Either.right(bytes)
    : Either.left("32 bytes in base64, as `openssl rand -base64 32` prints them")
}

/** One of these words. */
export const oneOf =
  <const A extends string>(...allowed: ReadonlyArray<A>) =>
  (value: string): Format.Read<A> => {
    const found = allowed.find((_) => _ === value.trim())
    return found === undefined ? Either.left(`one of ${allowed.join(", ")}`) : Either.right(found)
  }

/** `host:port`. */
export const hostPort = (value: string): Format.Read<string> =>
  /^[^\s:/]+:\d{1,5}$|^\[[0-9a-f:]+\]:\d{1,5}$/i.test(value.trim()) ? Either.right(value.trim()) : Either.left("host:port")

/** The address of a resolver, with or without a port. */
export const resolver = (value: string): Format.Read<string> => {
  const [, host = value] = /^\[?([^\]]+?)\]?(?::\d{1,5})?$/.exec(value) ?? []
  return Format.address(host) === undefined && Format.address(value) === undefined
    ? Either.left("the address of a resolver, such as 10.0.0.2 or 10.0.0.2:5353")
    : Either.right(value)
}

/** 1 to 50 waits, each at least as long. */
export const schedule =
  (shortest: Duration.DurationInput) =>
  (value: string): Format.Read<ReadonlyArray<Duration.Duration>> =>
    Either.filterOrLeft(
      Format.list(value, Format.duration),
      (waits) =>
        waits.length >= 1 &&
        waits.length <= 50 &&
        waits.every(Duration.greaterThanOrEqualTo(shortest)) &&
        Duration.lessThanOrEqualTo(waits.reduce(Duration.sum), "30 days"),
      () =>
        `1 to 50 comma-separated waits of at least ${Duration.format(shortest)}, such as 1s,2s,5m, and of at most 30 days in total: the log has a delivery for 31`
    )

/** An origin that browsers keep safe: https, or http on loopback. */
export const safeOrigin = (value: string): Format.Read<string> => {
  const parsed = URL.canParse(value.trim()) ? new URL(value.trim()) : undefined
  const fits =
    parsed !== undefined &&
    parsed.href === `${parsed.origin}/` &&
    (parsed.protocol === "https:" || (parsed.protocol === "http:" && isLoopback(parsed.hostname)))
  return fits ? Either.right(parsed.origin) : Either.left("an https URL without a path, such as https://custody.example.com")
}

/** Whether a host name of a URL is this machine's own. */
export const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
