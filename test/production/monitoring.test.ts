/**
 * Dashboard and alert rules: their expressions are PromQL by Prometheus' own grammar and name what a running service exports,
 * and every alert has a runbook.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { parser } from "@prometheus-io/lezer-promql"
import { useApp } from "../support/app.ts"
import { documentText } from "../support/document.ts"
import { outcome, unless } from "../support/languages.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { smallest, transaction } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}
interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}

const { groups } = Bun.YAML.parse(documentText("deploy/monitoring/alerts.yaml")) as {
  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }>
}
const rules = groups.flatMap(({ rules }) => rules)
const { panels } = JSON.parse(documentText("deploy/monitoring/dashboard.json")) as { readonly panels: ReadonlyArray<Panel> }
const expressions: ReadonlyArray<readonly [string, string]> = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ targets = [], title }) =>
    // Grafana fills its own variable in.
    targets.map(({ expr }) => [title, expr.replaceAll("$__rate_interval", "5m")] as const)
  )
]

/** The metrics of an expression, each with the labels that it is selected or grouped by, and where it is no PromQL. */
const read = (expression: string) => {
  const metrics: Array<{ readonly metric: string; readonly labels: ReadonlyArray<string> }> = []
  const grouped: Array<string> = []
  const faults: Array<number> = []
  const textOf = ({ from, to }: { readonly from: number; readonly to: number }) => expression.slice(from, to)
  parser.parse(expression).iterate({
    enter: ({ from, name, node, type }) => {
      if (type.isError) faults.push(from)
      if (name === "GroupingLabels") grouped.push(...node.getChildren("LabelName").map(textOf))
      if (name !== "VectorSelector") return
      const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? []
      const metric = node.getChild("Identifier")
      metrics.push({
        metric: metric === null ? "" : textOf(metric),
        labels: matchers.flatMap((matcher) => matcher.getChildren("LabelName").map(textOf))
      })
    }
  })
  return { metrics: metrics.map(({ labels, metric }) => ({ metric, labels: [...labels, ...grouped] })), faults }
}

const receiver = useReceiver()
const app = useApp([], () => receiverEnv(receiver))
/** What a service exports that has done everything once: each sample's name, with the names of its labels. */
const exported = new Map<string, ReadonlySet<string>>()
let served = ""

beforeAll(async () => {
  // As its own replica it is no standby, so that the metrics of a replica are there.
  app.main = await app.start(["api", "worker", "dispatcher"], { DATABASE_READ_URL: app.databaseUrl })
  await app.feed(smallest(), { "x-record-events": "none" })
  const { secret } = await app.key("user_a")
  await create(app, secret, { url: receiver.url("/hook") })
  await app.feed([transaction("vault_a", 1)])
  await app.get("/v1/vaults", secret)
  await app.get("/v1/event-feed/stream?from=now", secret)
  await until("the attempt", async () => {
    served = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
    return served.includes("custody_delivery_attempts_total{")
  })
  for (const [, name = "", labels = ""] of served.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = ""]) => label)
    exported.set(name, new Set([...(exported.get(name) ?? []), ...names]))
  }
})

const withoutPromtool = unless("promtool")
test.skipIf(withoutPromtool !== "")(`Prometheus accepts its configuration and the rules${withoutPromtool}`, async () => {
  expect(await outcome(["promtool", "check", "config", "deploy/monitoring/prometheus.yaml"])).toMatchObject({ code: 0, error: "" })
})

test("Prometheus scrapes every service of the compose file with a role, at its platform listener", () => {
  const { scrape_configs } = Bun.YAML.parse(documentText("deploy/monitoring/prometheus.yaml")) as {
    readonly scrape_configs: ReadonlyArray<{
      readonly dns_sd_configs: ReadonlyArray<{ readonly names: ReadonlyArray<string>; readonly port: number }>
    }>
  }
  const { services } = Bun.YAML.parse(documentText("docker-compose.yml")) as {
    readonly services: Readonly<Record<string, { readonly command?: ReadonlyArray<string>; readonly healthcheck?: unknown }>>
  }
  const scraped = scrape_configs.flatMap(({ dns_sd_configs }) => dns_sd_configs)
  const running = Object.entries(services).filter(([, { command = [] }]) => command.includes("--roles"))
  expect(scraped.flatMap(({ names }) => names)).toEqual(running.map(([name]) => name))
  for (const { port } of scraped) for (const [, { healthcheck }] of running) expect(JSON.stringify(healthcheck)).toContain(`:${port}/`)
})

describe("dashboard and alert rules", () => {
  test("every expression is PromQL", () => {
    expect(expressions.length).toBeGreaterThan(25)
    for (const [of, expression] of expressions) expect([of, read(expression).faults]).toEqual([of, []])
    expect(read("sum(rate(a[5m]) > 1").faults).not.toEqual([])
  })

  test("every metric and every label that they name is one that a service exports", () => {
    for (const [of, expression] of expressions) {
      const { metrics } = read(expression)
      expect([of, metrics.length > 0]).toEqual([of, true])
      for (const { labels, metric } of metrics) {
        expect([of, metric, exported.has(metric)]).toEqual([of, metric, true])
        expect([of, metric, labels.filter((label) => exported.get(metric)?.has(label) !== true)]).toEqual([of, metric, []])
      }
    }
    expect(read('sum by (a) (b{c="d", e!="f"})').metrics).toEqual([{ metric: "b", labels: ["c", "e", "a"] }])
  })

  test("only processes of the API export what tells that one is there", async () => {
    const metric = read(rules.find(({ alert }) => alert === "CustodyApiDown")?.expr ?? "").metrics[0]?.metric ?? ""
    for (const [roles, has] of [
      [["worker", "dispatcher"], false],
      [["api"], true]
    ] as const) {
      const one = await app.start(roles)
      const found = await (await fetch(`${one.platformUrl}/metrics`)).text()
      await one.end()
      expect([roles, found.includes("\ncustody_dependency_up{"), found.includes(`\n${metric} `)]).toEqual([roles, true, has])
    }
  })

  test("answers of the record feed are counted by status", async () => {
    const counted = async (status: string) => {
      const text = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
      return Number(new RegExp(`^custody_feed_answers_total\\{status="${status}"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0)
    }
    const before = await counted("200")
    await app.feed([transaction("vault_a", 2)])
    await fetch(`${app.main?.platformUrl}/platform/v1/records`, { method: "POST" })
    expect([await counted("200"), await counted("401")]).toEqual([before + 1, 1])
  })

  test("every metric of the service is on the dashboard", () => {
    const shown = new Set(
      panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => [...expr.matchAll(/custody_\w+/g)].map(String)))
    )
    const families = [...served.matchAll(/^# TYPE (custody_\w+) (\w+)$/gm)].map(([, name = "", kind]) =>
      kind === "histogram" ? `${name}_bucket` : name
    )
    expect(families.filter((name) => !shown.has(name))).toEqual([])
  })

  test("panels of the dashboard have ids of their own and do not overlap", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h * w }, (_, cell) => `${x + (cell % w)}/${y + Math.floor(cell / w)}`)
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.filter(({ gridPos: { w, x } }) => x + w > 24)).toEqual([])
  })

  test("every alert has a severity, a summary and a runbook of at most one screen", () => {
    const sections = documentText("docs/runbooks.md").split(/^## /m).slice(1)
    const runbooks = new Map(sections.map((text) => [text.split("\n", 1)[0] ?? "", text.trim().split("\n").length]))
    expect(rules.map(({ alert }) => alert)).toEqual([...runbooks.keys()])
    for (const { alert, annotations, labels } of rules) {
      expect([alert, annotations.runbook]).toEqual([alert, `docs/runbooks.md#${alert.toLowerCase()}`])
      expect([alert, ["critical", "warning"].includes(labels.severity), annotations.summary.length > 0]).toEqual([alert, true, true])
      expect([alert, (runbooks.get(alert) ?? 99) <= 25]).toEqual([alert, true])
    }
  })
})
