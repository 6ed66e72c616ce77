/** A complete service with an organization, endpoints and history, for tests of the portal in a browser. */
import { afterAll, beforeAll } from "bun:test"
import { App, type Environment } from "../support/app.ts"
import { Receiver, receiverEnv } from "../support/receiver.ts"
import { address, asset, balance, entity, network, organization, transaction, user, vault } from "../support/records.ts"

const USDC = "ethereum/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"

/** Two organizations; the first with two entities, three vaults, an owner and a member. */
const organizations = () => [
  network("ethereum"),
  network("bitcoin"),
  asset("ethereum/native", { symbol: "ETH", name: "Ether" }),
  asset(USDC, { symbol: "USDC", name: "USD Coin", decimals: 6 }),
  asset("bitcoin/native", { symbol: "BTC", name: "Bitcoin", decimals: 8 }),
  { ...organization("org_a", ["ethereum", "bitcoin"]), name: "Northwind Exchange" },
  entity("entity_a", "org_a", { name: "Northwind Trading AG" }),
  entity("entity_b", "org_a", { name: "Northwind Treasury Ltd" }),
  vault("vault_a", "entity_a", { label: "Exchange hot wallet", networks: ["ethereum", "bitcoin"] }),
  vault("vault_b", "entity_a", { label: "Settlement" }),
  vault("vault_c", "entity_b", { label: "Cold treasury", networks: ["bitcoin"] }),
  user("user_a", "org_a", ["vault_a", "vault_b", "vault_c"], {
    organizationRole: "owner",
    name: "Ada Keller",
    email: "ada@northwind.example"
  }),
  user("user_m", "org_a", ["vault_a"], { name: "Max Muster", email: "max@northwind.example" }),
  { ...organization("org_z", ["ethereum"]), name: "Zeta" },
  entity("entity_z", "org_z", { name: "Zeta" }),
  vault("vault_z", "entity_z", { label: "Vault of others" }),
  user("user_z", "org_z", ["vault_z"], { organizationRole: "owner", name: "Zoe", email: "zoe@zeta.example" })
]

const history = () => [
  balance("vault_a", "ethereum/native", "1204.350000000000000017"),
  balance("vault_a", USDC, "18250344.09"),
  balance("vault_a", "bitcoin/native", "42.19054321"),
  balance("vault_b", "ethereum/native", "7.25"),
  address("vault_a", "0xA28C42486E15AD7dC8d58792cC2AdD3014006E1d"),
  address("vault_a", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", { network: "bitcoin" }),
  ...Array.from({ length: 30 }, (_, number) =>
    transaction("vault_a", 1_000 + number, {
      direction: number % 3 === 0 ? "outbound" : "inbound",
      asset: number % 2 === 0 ? USDC : "ethereum/native",
      amount: number % 2 === 0 ? `${(number + 1) * 1250}.5` : `${number}.000000000000000001`,
      timestamp: new Date(Date.UTC(2026, 4, 1 + (number % 28), 9, number)).toISOString(),
      status: number === 29 ? "pending" : "confirmed"
    })
  )
]

/** Starts the service for the test file that calls this. */
export const usePortalService = (ready: boolean, env: Environment = {}) => {
  const app = new App()
  const receiver = new Receiver()
  beforeAll(async () => {
    if (!ready) return
    await receiver.open()
    await app.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h,1h", ...env })
    await app.feed([...organizations(), ...history()], { "x-record-events": "none" })
  })
  afterAll(async () => {
    if (!ready) return
    await app.close()
    await receiver.close()
  })
  return {
    app,
    receiver,
    /** The portal under a host name, as passkeys require it. */
    origin: () => (app.main?.baseUrl ?? "").replace("127.0.0.1", "localhost")
  }
}
