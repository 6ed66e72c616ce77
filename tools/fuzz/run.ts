/**
 * `bun run fuzz [minutes] [more options of schemathesis]`: runs all checks of schemathesis, with valid and invalid
 * generated requests, against the running service and its OpenAPI document, for this many minutes (default 2). Exits with 0
 * if nothing was found, and also without Python, after a message.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { announced, custody, end, environment, folder, start } from "../../bench/support/servers.ts"

const VERSION = "4.32.5"
const root = path.resolve(import.meta.dir, "../..")
const home = path.join(root, "node_modules", ".cache", `schemathesis-${VERSION}`)
const program = path.join(home, "bin", "schemathesis")

const run = async (command: ReadonlyArray<string>, quiet = true, env: { readonly [name: string]: string } = {}): Promise<boolean> => {
  try {
    const child = Bun.spawn([...command], {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ["ignore", quiet ? "ignore" : "inherit", "inherit"]
    })
    return (await child.exited) === 0
  } catch {
    return false
  }
}

const [given, ...more] = process.argv.slice(2)
const minutes = given === undefined ? 2 : Number(given)
if (!(minutes > 0)) {
  console.error(`bun run fuzz [minutes]: read “${given}”, expected a number of minutes.`)
  process.exit(2)
}

if (!fs.existsSync(program)) {
  const usable = await run(["python3", "-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"])
  if (!usable) {
    console.log("Skipped: fuzzing needs Python 3.10 or newer with venv, and there is none. On Debian: apt install python3-venv.")
    process.exit(0)
  }
  console.log(`Installing schemathesis ${VERSION} into ${path.relative(root, home)} …`)
  const installed =
    (await run(["python3", "-m", "venv", home])) &&
    (await run([path.join(home, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", `schemathesis==${VERSION}`]))
  if (!installed) {
    fs.rmSync(home, { recursive: true, force: true })
    console.error("schemathesis could not be installed: is the package index reachable?")
    process.exit(1)
  }
}

const vaultIds = ["vault_fuzz1", "vault_fuzz2"]
const records = [
  { type: "network", name: "ethereum", kind: "mainnet" },
  { type: "asset", id: "ethereum/native", symbol: "ETH", name: "Ether", decimals: 18, network: "ethereum" },
  { type: "organization", id: "org_fuzz", name: "Fuzz", networks: ["ethereum"] },
  { type: "entity", id: "entity_fuzz", organizationId: "org_fuzz", name: "Fuzz" },
  ...vaultIds.map((id) => ({
    type: "vault",
    id,
    entityId: "entity_fuzz",
    label: id,
    networks: ["ethereum"],
    createdAt: "2024-01-01T00:00:00Z"
  })),
  {
    type: "user",
    id: "user_fuzz",
    organizationId: "org_fuzz",
    email: "fuzz@example.com",
    name: "Fuzz",
    status: "active",
    organizationRole: "owner",
    vaultRoles: vaultIds.map((vaultId) => ({ vaultId, role: "developer" }))
  },
  ...vaultIds.flatMap((vaultId) => [
    { type: "balance", vaultId, asset: "ethereum/native", amount: "1.5" },
    { type: "address", vaultId, address: `0x${vaultId}`, network: "ethereum", assetType: "native" },
    ...Array.from({ length: 250 }, (_, index) => ({
      type: "transaction",
      vaultId,
      hash: `0x${index.toString(16).padStart(64, "0")}`,
      network: "ethereum",
      index: 0,
      status: "confirmed",
      direction: "inbound",
      asset: "ethereum/native",
      amount: "0.000000000000000001",
      from: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
      to: "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
      timestamp: new Date(Date.UTC(2024, 5, 1) + index * 60_000).toISOString()
    }))
  ])
]

let clean = false
try {
  // Nothing leaves the machine: the only DNS server that deliveries may use does not respond.
  const env = environment({ WEBHOOK_DNS_SERVERS: "127.0.0.1:9", LOG_LEVEL: "warning" })
  const file = path.join(folder, "records.ndjson")
  const lines = (some: ReadonlyArray<unknown>) => some.map((record) => JSON.stringify(record)).join("\n")
  fs.writeFileSync(file, lines(records.filter(({ type }) => type !== "transaction")))
  const { port } = await start("src/main.ts", ["start"], { ...env, LOG_LEVEL: "info" }, announced)
  await custody(["load", file, "--no-events"], env)
  const scopes = ["--scopes", "vault:read,webhook:read,webhook:manage", "--all-vaults"]
  const { secret: key } = JSON.parse(await custody(["keys", "create", "--user", "user_fuzz", ...scopes], env))
  const base = `http://127.0.0.1:${port}`
  const body = {
    url: "https://hooks.example.com/",
    entityIds: ["entity_fuzz"],
    eventKinds: ["transaction.confirmed"],
    notificationEmail: "fuzz@example.com"
  }
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const created = await fetch(`${base}/v1/webhooks`, { method: "POST", headers, body: JSON.stringify(body) })
  if (created.status !== 201) throw new Error(`the webhook was refused: ${await created.text()}`)
  fs.writeFileSync(file, lines(records.filter(({ type }) => type === "transaction")))
  await custody(["load", file], env)

  // The worker starts after the API: from here on it sends.
  const { id } = JSON.parse(await created.text())
  for (let tries = 0; ; tries++) {
    const ping = await fetch(`${base}/v1/webhooks/${id}/ping`, { method: "POST", headers })
    if (ping.status === 200) break
    if (tries > 30) throw new Error(`no worker pings: ${await ping.text()}`)
    await Bun.sleep(1_000)
  }

  console.log(`schemathesis ${VERSION}, every check, ${minutes} min, against ${base}`)
  clean = await run(
    [
      program,
      "--config-file",
      path.join(import.meta.dir, "schemathesis.toml"),
      "run",
      `${base}/v1/openapi.json`,
      "--checks",
      "all",
      "--max-time",
      String(Math.round(minutes * 60)),
      "--request-timeout",
      "20",
      "--max-response-time",
      "18",
      "--workers",
      "2",
      "--continue-on-failure",
      "--generation-database",
      "none",
      "--no-color",
      ...more
    ],
    false,
    { SCHEMATHESIS_HOOKS: path.join(import.meta.dir, "hooks.py"), FUZZ_KEY: key, FUZZ_ENTITY: "entity_fuzz", FUZZ_VAULT: vaultIds[0] ?? "" }
  )
} finally {
  await end()
}
process.exit(clean ? 0 : 1)
