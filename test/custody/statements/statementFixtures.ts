/** Vaults with statements: shared steps of their tests. */
import { beforeAll, expect } from "bun:test"
import { type App, cli } from "../../support/app.ts"
import { asset, smallest, user, vault } from "../../support/records.ts"

const DAY = 86_400_000

export const ETH = "ethereum/native",
  /** An asset without decimals, for amounts of 78 digits. */
  BIG = "ethereum/erc20:0x0000000000000000000000000000000000000078"

/** Today's first moment. */
export let today = 0

/**
 * Begins a file of tests of statements, which take a few minutes: a day that ended meanwhile would be due. Each file
 * calls this, as all files of a process share this module.
 */
export const beginDay = async (): Promise<void> => {
  const untilMidnight = DAY - (Date.now() % DAY)
  if (untilMidnight < 300_000) await Bun.sleep(untilMidnight + 1_000)
  today = Math.floor(Date.now() / DAY) * DAY
}

/** The day this many days from today as `YYYY-MM-DD`, -1 for yesterday; and a time of it. */
export const dayOf = (day: number): string => new Date(today + day * DAY).toISOString().slice(0, 10)
export const timeOf = (day: number, time: string): string => `${dayOf(day)}T${time}Z`

/** The last 29 February half a year ago or longer, as a number of days before today. */
export const leapDay = (): number => {
  for (let day = -167; ; day--) if (dayOf(day).endsWith("-02-29")) return day
}

/** An organization `org_a` with both assets, and helpers for statements of its vaults. */
export const useStatements = (app: App) => {
  let key = "",
    count = 0
  beforeAll(async () => {
    await app.feed([...smallest(), asset(BIG, { decimals: 0, symbol: "BIG" })])
    key = (await app.key("user_a")).secret
  })

  /** A path of a vault's statements. */
  const get = (id: string, path = "", headers: { readonly [name: string]: string } = {}) =>
    app.get(`/v1/vaults/${id}/statements${path}`, key, headers)
  /** The newest revisions, newest day first. */
  const list = (id: string, limit = 3) => app.walk(`/v1/vaults/${id}/statements`, key, limit)

  return {
    /** The key of the vaults' owner. */
    key: () => key,
    get,
    list,

    /** Adds a vault. */
    fresh: async (): Promise<string> => {
      const id = `vault_s${++count}`
      const all = ["vault_a", ...Array.from({ length: count }, (_, index) => `vault_s${index + 1}`)]
      await app.feed([vault(id, "entity_a"), user("user_a", "org_a", all, { organizationRole: "owner" })], { "x-record-events": "none" })
      return id
    },

    /** Seals due statements and returns the result. */
    seal: async (env: { readonly [name: string]: string } = {}) => {
      const { code, stderr, stdout } = await cli(["statements", "seal"], { ...app.env, ...env })
      expect([code, code === 0 ? "" : stderr]).toEqual([0, ""])
      return JSON.parse(stdout)
    },

    /** Every revision of every day. */
    revisions: async (id: string, limit = 100) => {
      const all = []
      for (const newest of await list(id, limit)) {
        for (let one = 1; one < newest.revision; one++) all.push((await get(id, `/${newest.date}?revision=${one}`)).json)
        all.push(newest)
      }
      return all
    }
  }
}
