/**
 * A client in a network namespace of its own, whose packets can be dropped: it then vanishes as a machine does that loses
 * its network, without a FIN or RST. Needs Linux, root and iproute2.
 */
import { type ChildProcess, spawn } from "node:child_process"

/** The namespace and the ends of the link, of this process: a run that was killed leaves its own. */
const NAME = `custody${process.pid}`,
  NEAR_LINK = `${NAME}n`,
  FAR_LINK = `${NAME}f`
const subnet = process.pid % 16_384
const address = (end: number) => `10.213.${subnet >> 6}.${(subnet & 63) * 4 + end}`
export const NEAR = address(1)
const FAR = address(2)

const ip = (...args: ReadonlyArray<string>): string | undefined => {
  const { exitCode, stderr } = Bun.spawnSync(["ip", ...args], { stdout: "ignore", stderr: "pipe" })
  return exitCode === 0 ? undefined : `ip ${args.join(" ")}: ${stderr.toString().trim()}`
}
const required = (...args: ReadonlyArray<string>) => {
  const error = ip(...args)
  if (error !== undefined) throw new Error(error)
}

/** Why there can be no such client here; undefined if there can. */
export const missing = (): string | undefined => {
  if (process.platform !== "linux") return "it needs Linux"
  if (Bun.which("ip") === null) return "iproute2 is not installed"
  const error = ip("netns", "add", NAME)
  if (error === undefined) ip("netns", "delete", NAME)
  return error === undefined ? undefined : "it needs the right to create network namespaces"
}

export class DistantClient {
  readonly #children: Array<ChildProcess> = []

  open(): void {
    required("netns", "add", NAME)
    required("link", "add", NEAR_LINK, "type", "veth", "peer", "name", FAR_LINK, "netns", NAME)
    required("address", "add", `${NEAR}/30`, "dev", NEAR_LINK)
    required("link", "set", NEAR_LINK, "up")
    required("-n", NAME, "address", "add", `${FAR}/30`, "dev", FAR_LINK)
    required("-n", NAME, "link", "set", FAR_LINK, "up")
  }

  /** Opens requests that stay open; resolves when each has begun its response. */
  async hold(url: string, headers: Readonly<Record<string, string>>, count: number): Promise<void> {
    const script = `const [url, headers, count] = ${JSON.stringify([url, headers, count])}
      const all = await Promise.all(Array.from({ length: count }, () => fetch(url, { headers })))
      console.log(all.map(({ status }) => status).join())
      await Promise.all(all.map((response) => response.text()))`
    const child = spawn("ip", ["netns", "exec", NAME, process.execPath, "-e", script], { stdio: ["ignore", "pipe", "inherit"] })
    this.#children.push(child)
    const statuses = await new Promise<string>((resolve) => child.stdout?.once("data", (chunk: Buffer) => resolve(chunk.toString().trim())))
    if (statuses !== Array.from({ length: count }, () => 200).join()) throw new Error(`the requests were answered ${statuses}`)
  }

  /** From now on nothing that it sends arrives. */
  vanish(): void {
    required("-n", NAME, "route", "replace", "blackhole", `${NEAR}/32`)
  }

  close(): void {
    for (const child of this.#children) child.kill("SIGKILL")
    ip("link", "delete", NEAR_LINK)
    ip("netns", "delete", NAME)
  }
}
