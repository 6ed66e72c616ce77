import { beforeAll, describe, expect, test } from "bun:test"
import type { Page } from "playwright-core"
import { eventSchema } from "../../src/events/log/eventSchema.ts"
import { names } from "../../src/events/log/Kind.ts"
import { sampleEvent } from "../../src/events/log/sampleEvent.ts"
import { eventFields } from "../../src/portal/web/eventFields.ts"
import { create } from "../support/webhookFixtures.ts"
import { hasBrowser, type PortalPage, useOwner } from "./PortalPage.ts"

/** The paths of every value in JSON, as the catalog writes them. */
const pathsIn = (value: unknown, path = ""): ReadonlyArray<string> =>
  Array.isArray(value)
    ? [path]
    : typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, one]) => pathsIn(one, path === "" ? name : `${path}.${name}`))
      : [path]

describe("the fields of an event kind", () => {
  test("include every field of its sample, each once", () => {
    for (const kind of names) {
      const fields = eventFields(JSON.parse(JSON.stringify(eventSchema(kind)))).map(({ path }) => path)
      const sample = pathsIn(JSON.parse(sampleEvent("evt_0", kind, "2026-01-01T00:00:00.000Z"))).filter((path) => path !== "data.test")
      expect([kind, sample.filter((path) => !fields.includes(path))]).toEqual([kind, []])
      expect([kind, new Set(fields).size]).toEqual([kind, fields.length])
    }
  })

  test("all have a meaning", () => {
    const without = names.flatMap((kind) =>
      eventFields(JSON.parse(JSON.stringify(eventSchema(kind)))).flatMap(({ description, path }) =>
        description === "" ? [[kind, path]] : []
      )
    )
    expect(without).toEqual([])
  })

  test("say type and meaning, with references resolved", () => {
    const fields = eventFields(JSON.parse(JSON.stringify(eventSchema("transaction.confirmed"))))
    const at = (path: string) => fields.find((one) => one.path === path)
    expect(at("data.transaction.memo")?.type).toBe("string or null")
    expect(at("data.previous.memo")?.type).toBe("string or null, optional")
    expect(at("data.transaction.direction")?.type).toBe('"inbound", "outbound"')
    expect(at("date")).toMatchObject({ type: "date-time", description: "When the event occurred; order by it, not by arrival" })
    expect(at("data.transaction")).toBeUndefined()
  })
})

const { app, browser, owner, receiver } = useOwner()
let portal: PortalPage, page: Page
beforeAll(() => {
  if (!hasBrowser) return
  portal = owner()
  page = portal.page
})

describe.skipIf(!hasBrowser)("the catalog of event kinds in a browser", () => {
  test("leads from the events to a kind, and sends its sample to a webhook", async () => {
    receiver.on("/catalog", () => new Response("taken"))
    const body = { description: "Back office", url: receiver.url("/catalog"), eventKinds: ["vault.updated"] }
    const { id } = await create(app, (await app.key("user_a")).secret, body)
    await portal.goto("/events")
    await page.getByRole("link", { name: "Event kinds" }).click()
    await portal.heading("Event kinds").waitFor()
    expect(await page.locator("tbody tr").count()).toBe(names.length)
    await portal.expectAccessible("event kinds")
    await page.getByRole("link", { name: "balance.updated" }).click()
    await page.getByRole("row", { name: /data\.balance\.asOf.*date-time.*Time of the record/ }).waitFor()
    expect(await page.getByRole("region", { name: "Example" }).textContent()).toContain('"amount": "0"')
    await portal.expectAccessible("an event kind")
    await page.getByRole("button", { name: "Send a sample" }).click()
    const dialog = page.getByRole("dialog")
    expect(await dialog.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true)
    await dialog.getByLabel("Webhook").selectOption(id)
    await dialog.getByRole("button", { name: "Send", exact: true }).click()
    await page.getByText("The endpoint accepted the event").waitFor()
    expect(receiver.to("/catalog").map(({ headers }) => headers["x-service-event-kind"])).toEqual(["balance.updated"])
    await portal.expectAccessible("a sample that was sent")
    await portal.goto("/events/kinds/nothing.happened")
    await page.getByText("There is no such event kind").waitFor()
  })

  test("no page had a script error", () => {
    expect(browser.faults).toEqual([])
  })
})
