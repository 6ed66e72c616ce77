/**
 * Decision D-59: the Helm chart, rendered by Helm, is valid by Kubernetes' published schemas and consistent with the program's
 * settings, roles, health checks and shutdown.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import * as path from "node:path"
import Ajv from "ajv"
import { ConfigProvider, Effect } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import type { Setting } from "../../src/runtime/settings/readers.ts"
import { roles } from "../../src/runtime/settings/roles.ts"
import { inspect } from "../../src/runtime/settings/Settings.ts"
import { table } from "../../src/runtime/settings/table.ts"
import { type ApiSchema, helm, KUBERNETES, kubernetesSchemas, serviceMonitorSchema } from "../../tools/helm.ts"
import { cli } from "../support/app.ts"
import { documentText } from "../support/document.ts"
import { freshDatabase } from "../support/servers.ts"

const chart = path.resolve(import.meta.dir, "../../deploy/helm")
const settings: ReadonlyArray<Setting<unknown>> = Object.values(table)
const secrets = settings.filter(({ secret }) => secret).map(({ name }) => name)

// biome-ignore lint/suspicious/noExplicitAny: tests look into manifests field by field
type Manifest = any

let binary = ""
let validate: (manifest: Manifest) => ReadonlyArray<string>

const required = {
  image: { repository: "registry.example.com/custody" },
  secretName: "custody",
  settings: { TEMPORAL_ADDRESS: "temporal:7233" }
}
/** Every option of the chart. */
const everything = {
  ...required,
  image: { ...required.image, digest: `sha256:${"0".repeat(64)}` },
  imagePullSecrets: [{ name: "registry" }],
  filesSecretName: "custody-files",
  settings: { ...required.settings, TRUSTED_PROXIES: "10.0.0.0/8", EXPORT_MAX_ROWS: "1000000", TEMPORAL_TLS_CA_FILE: "/files/ca.pem" },
  api: { autoscaling: { enabled: true } },
  worker: { autoscaling: { enabled: true } },
  service: { annotations: { "example.com/a": "b" } },
  serviceMonitor: { enabled: true, interval: "15s", labels: { release: "prometheus" } },
  ingress: {
    enabled: true,
    className: "nginx",
    host: "custody.example.com",
    tlsSecretName: "custody-tls",
    annotations: { "example.com/a": "b" }
  },
  networkPolicy: {
    apiFrom: [{ namespaceSelector: { matchLabels: { name: "ingress" } } }],
    platformFrom: [{ podSelector: {} }],
    postgres: { to: [{ ipBlock: { cidr: "10.1.0.0/16" } }] },
    temporal: { to: [{ podSelector: { matchLabels: { app: "temporal" } } }] },
    extraEgress: { api: [{ ports: [{ port: 443, protocol: "TCP" }] }] }
  },
  podAnnotations: { "prometheus.io/scrape": "true" },
  podLabels: { team: "custody" },
  nodeSelector: { disk: "ssd" },
  tolerations: [{ key: "dedicated", operator: "Exists" }],
  priorityClassName: "high"
}

const run = async (args: ReadonlyArray<string>, values: object) => {
  const child = Bun.spawn([binary, ...args, "--kube-version", KUBERNETES, "--values", "-"], {
    stdin: new Blob([JSON.stringify(values)]),
    stdout: "pipe",
    stderr: "pipe"
  })
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, out, error }
}

const render = async (values: object): Promise<ReadonlyArray<Manifest>> => {
  const { code, error, out } = await run(["template", "custody", chart, "--namespace", "custody"], values)
  if (code !== 0) throw new Error(error)
  return (Bun.YAML.parse(out.replace(/^---\n/, "")) as Manifest[] | Manifest).filter?.((one: Manifest) => one !== null) ?? []
}

const ofKind = (manifests: ReadonlyArray<Manifest>, kind: string): ReadonlyArray<Manifest> => manifests.filter((one) => one.kind === kind)
const componentOf = (manifest: Manifest): string => manifest.metadata.labels["app.kubernetes.io/component"]
/** Deployments and the Job, by component. */
const workloads = (manifests: ReadonlyArray<Manifest>) =>
  [...ofKind(manifests, "Deployment"), ...ofKind(manifests, "Job")].map((one) => ({
    component: componentOf(one),
    manifest: one,
    pod: one.spec.template.spec,
    container: one.spec.template.spec.containers[0]
  }))

beforeAll(async () => {
  binary = await helm()
  const definitions = await kubernetesSchemas()
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  // A field that Kubernetes does not know is a mistake, and the API server says so.
  const strictly = (schemas: object) =>
    JSON.parse(
      JSON.stringify(schemas, (_, value: ApiSchema & { additionalProperties?: unknown }) =>
        typeof value === "object" &&
        value !== null &&
        typeof value.properties === "object" &&
        !("type" in value.properties && typeof value.properties["type"] === "string")
          ? { additionalProperties: false, ...value }
          : value
      )
    )
  const strict = strictly({ $id: "kubernetes", definitions })
  // Published as a string, but integers are what everybody writes.
  Object.assign(strict.definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"], { type: ["string", "integer"] })
  ajv.addSchema(strict)
  ajv.addSchema({ $id: "prometheus-operator", definitions: { ServiceMonitor: strictly(await serviceMonitorSchema()) } })
  const names = new Map(
    Object.entries(definitions).flatMap(([name, schema]) =>
      (schema["x-kubernetes-group-version-kind"] ?? []).map(
        ({ group, kind, version }) => [`${group === "" ? "" : `${group}/`}${version} ${kind}`, name] as const
      )
    )
  )
  validate = (manifest) => {
    const kind = `${manifest.apiVersion} ${manifest.kind}` as const
    const name = names.get(kind)
    const own = kind === "monitoring.coreos.com/v1 ServiceMonitor" ? "prometheus-operator#/definitions/ServiceMonitor" : undefined
    const $ref = name === undefined ? own : `kubernetes#/definitions/${name}`
    if ($ref === undefined) return [`unknown kind ${kind}`]
    const check = ajv.compile({ $ref })
    return check(manifest)
      ? []
      : (check.errors ?? []).map((one) => `${manifest.kind} ${one.instancePath} ${one.message} ${JSON.stringify(one.params)}`)
  }
}, 900_000)

describe("the Helm chart", () => {
  test("passes helm lint, and belongs to this version of the program", async () => {
    for (const values of [required, everything]) {
      const { code, error, out } = await run(["lint", chart, "--strict"], values)
      expect([code, out + error]).toEqual([0, expect.stringContaining("0 chart(s) failed")])
    }
    const about = Bun.YAML.parse(documentText("deploy/helm/Chart.yaml")) as Manifest
    expect([about.version, about.appVersion]).toEqual([packageJson.version, packageJson.version])
  })

  test("renders what Kubernetes' published schemas allow, with every option and without", async () => {
    for (const values of [required, everything, { ...required, networkPolicy: { enabled: false }, migrate: { enabled: false } }]) {
      const manifests = await render(values)
      expect(manifests.length).toBeGreaterThan(7)
      expect(manifests.flatMap(validate)).toEqual([])
    }
    const [wrong] = ofKind(await render(required), "Deployment")
    wrong.spec.template.spec.containers[0].livenessProb = {}
    wrong.spec.replicas = "two"
    expect(validate(wrong)).toHaveLength(2)
  })

  test("requires an image, a Secret and a Temporal cluster, and refuses unknown values", async () => {
    const refused: ReadonlyArray<readonly [object, RegExp]> = [
      [{ ...required, image: {} }, /image\.repository/],
      [{ ...required, secretName: "" }, /secretName/],
      [{ ...required, settings: {} }, /TEMPORAL_ADDRESS/],
      [{ ...required, replicas: 3 }, /replicas/],
      [{ ...required, settings: { ...required.settings, RATE_LIMITS: "off" } }, /RATE_LIMITS/],
      [{ ...required, settings: { ...required.settings, EXPORT_MAX_ROWS: 1_000_000 } }, /EXPORT_MAX_ROWS/],
      ...secrets.map((name) => [{ ...required, settings: { ...required.settings, [name]: "x" } }, new RegExp(name)] as const)
    ]
    for (const [values, says] of refused) {
      const { code, error } = await run(["template", "custody", chart], values)
      expect([code === 0, error]).toEqual([false, expect.stringMatching(says)])
    }
  })

  test("runs every role in its own Deployment after a Job that migrates", async () => {
    const manifests = await render(required)
    const args = Object.fromEntries(workloads(manifests).map(({ component, container }) => [component, container.args]))
    expect(args).toEqual({
      ...Object.fromEntries(roles.map((role) => [role, ["start", "--roles", role, "--no-migrate"]])),
      migrate: ["migrate"]
    })
    const [job] = ofKind(manifests, "Job")
    expect(job.metadata.annotations["helm.sh/hook"]).toBe("pre-install,pre-upgrade")
    // What a hook needs is there before it: no object of the release is.
    const env: ReadonlyArray<Manifest> = job.spec.template.spec.containers[0].env
    expect(env.map(({ name, valueFrom }) => [name, valueFrom.secretKeyRef.name])).toEqual([["DATABASE_URL", "custody"]])
    const { code } = await cli(job.spec.template.spec.containers[0].args, { DATABASE_URL: await freshDatabase() })
    expect(code).toBe(0)
  })

  test("sets only settings that the program reads, and each secret by reference", async () => {
    const given: Readonly<Record<string, string>> = {
      DATABASE_URL: "postgres://custody:x@postgres:5432/custody",
      DATABASE_READ_URL: "postgres://custody:x@replica:5432/custody",
      MASTER_KEY: randomBytes(32).toString("base64"),
      MASTER_KEY_PREVIOUS: randomBytes(32).toString("base64"),
      PLATFORM_TOKEN: randomBytes(24).toString("hex"),
      TEMPORAL_API_KEY: "key",
      PORTAL_OIDC_CLIENT_SECRET: "secret",
      SMTP_URL: "smtp://mail:587",
      WEBHOOK_PROXY_URL: "http://proxy:3128"
    }
    expect(Object.keys(given).sort()).toEqual([...secrets].sort())
    const image = Object.fromEntries(
      [...documentText("Dockerfile").matchAll(/^(?:ENV)?\s+(\w+)=(\S+?)(?: \\)?$/gm)].map(([, name = "", value = ""]) => [name, value])
    )
    expect(Object.keys(image)).toContain("DATA_DIR")
    const oidc = {
      PORTAL_OIDC_ISSUER: "https://id.example.com",
      PORTAL_OIDC_CLIENT_ID: "custody",
      PORTAL_BASE_URL: "https://custody.example.com"
    }
    const found = new Set<string>()
    for (const { component, container } of workloads(await render({ ...everything, settings: { ...everything.settings, ...oidc } }))) {
      const values = new Map(Object.entries(image))
      for (const { name, value, valueFrom } of container.env) {
        if (secrets.includes(name)) {
          expect([component, name, value, valueFrom.secretKeyRef.key]).toEqual([component, name, undefined, name])
          found.add(name)
        }
        values.set(name, value ?? given[name])
      }
      const { faults } = await Effect.runPromise(Effect.withConfigProvider(inspect, ConfigProvider.fromMap(values)))
      expect([component, faults]).toEqual([component, []])
      const known = settings.map(({ name }) => name)
      expect([component, [...values.keys()].filter((name) => !known.includes(name))]).toEqual([component, []])
      const names: ReadonlyArray<string> = container.env.map(({ name }: Manifest) => name)
      const has = (...wanted: ReadonlyArray<string>) => wanted.filter((name) => names.includes(name))
      expect([component, has("PLATFORM_TOKEN", "DATABASE_READ_URL")]).toEqual([
        component,
        component === "api" ? ["PLATFORM_TOKEN", "DATABASE_READ_URL"] : []
      ])
      expect([component, has("SMTP_URL", "WEBHOOK_PROXY_URL")]).toEqual([
        component,
        component === "worker" ? ["SMTP_URL", "WEBHOOK_PROXY_URL"] : component === "api" ? ["SMTP_URL"] : []
      ])
    }
    expect([...found].sort()).toEqual([...secrets].sort())
    expect(ofKind(await render(everything), "Secret")).toEqual([])
  })

  test("runs without root, privileges, a writable root or a cluster token", async () => {
    for (const { component, container, pod } of workloads(await render(required))) {
      expect([component, pod.automountServiceAccountToken, pod.securityContext.runAsNonRoot, pod.securityContext.runAsUser > 0]).toEqual([
        component,
        false,
        true,
        true
      ])
      expect([component, pod.securityContext.seccompProfile.type]).toEqual([component, "RuntimeDefault"])
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] }
      })
      expect(container.volumeMounts.map(({ mountPath }: Manifest) => mountPath)).toEqual(["/data", "/tmp"])
      expect([component, container.resources.requests.cpu, container.resources.limits.memory]).toEqual([
        component,
        expect.any(String),
        expect.any(String)
      ])
    }
  })

  test("has sample values in which only the ingress controller reaches the API", async () => {
    const [, sample = ""] = /```yaml\n# my-values\.yaml\n([\s\S]*?)```/.exec(documentText("deploy/helm/README.md")) ?? []
    const values = Bun.YAML.parse(sample) as Manifest
    const policies = ofKind(await render(values), "NetworkPolicy")
    expect(policies.find((one) => componentOf(one) === "api")?.spec.ingress[0].from).toHaveLength(1)
    for (const range of values.settings.TRUSTED_PROXIES.split(",")) expect(Number(range.split("/")[1])).toBeGreaterThanOrEqual(28)
  })

  test("asks the platform listener for health, drains, and keeps roles up during disruptions", async () => {
    const manifests = await render(everything)
    const platform = Number(table.platformPort.fallback)
    for (const { component, container, manifest, pod } of workloads(manifests).filter(({ component }) => component !== "migrate")) {
      const port = container.ports.find(({ name }: Manifest) => name === "platform").containerPort
      expect([component, port, container.livenessProbe.httpGet, container.readinessProbe.httpGet]).toEqual([
        component,
        platform,
        { path: "/health/live", port: "platform" },
        { path: "/health/ready", port: "platform" }
      ])
      // docs/operations.md: 20 seconds from SIGTERM to SIGKILL.
      const before = Number(container.lifecycle?.preStop.exec.command[1] ?? 0)
      expect([component, pod.terminationGracePeriodSeconds - before >= 20, before > 0]).toEqual([component, true, component === "api"])
      const budget = ofKind(manifests, "PodDisruptionBudget").find((one) => componentOf(one) === component)
      expect(budget.spec.selector).toEqual(manifest.spec.selector)
      expect(budget.spec.maxUnavailable).toBe(1)
      expect(manifest.spec.template.metadata.labels).toMatchObject(manifest.spec.selector.matchLabels)
      // A Deployment that is scaled must not set its size at each upgrade.
      const scaler = ofKind(manifests, "HorizontalPodAutoscaler").find((one) => componentOf(one) === component)
      expect([component, scaler !== undefined, manifest.spec.replicas !== undefined]).toEqual([
        component,
        component !== "dispatcher",
        component === "dispatcher"
      ])
      expect(scaler?.spec.scaleTargetRef.name ?? manifest.metadata.name).toBe(manifest.metadata.name)
    }
    const ports = ofKind(manifests, "Service").flatMap((one) =>
      one.spec.ports.map(({ targetPort }: Manifest) => [one.metadata.name, targetPort])
    )
    expect(ports).toEqual([
      ["custody-metrics", "platform"],
      ["custody", "api"],
      ["custody-platform", "platform"]
    ])
    // The platform listener is not public.
    const [ingress] = ofKind(manifests, "Ingress")
    expect(ingress.spec.rules[0].http.paths.map(({ backend }: Manifest) => backend.service)).toEqual([
      { name: "custody", port: { name: "api" } }
    ])
  })

  test("lets the Prometheus Operator scrape every pod if asked to", async () => {
    expect(ofKind(await render(required), "ServiceMonitor")).toEqual([])
    const manifests = await render(everything)
    const [monitor] = ofKind(manifests, "ServiceMonitor")
    expect(validate({ ...monitor, spec: { ...monitor.spec, endpoint: [] } })).toHaveLength(1)
    expect(monitor.metadata.labels).toMatchObject({ release: "prometheus" })
    expect(monitor.spec.endpoints).toEqual([{ port: "metrics", path: "/metrics", interval: "15s" }])
    const [service, ...others] = ofKind(manifests, "Service").filter(({ metadata }) =>
      Object.entries(monitor.spec.selector.matchLabels).every(([name, value]) => metadata.labels[name] === value)
    )
    expect([service.metadata.name, others, service.spec.ports[0].name]).toEqual(["custody-metrics", [], "metrics"])
    for (const { component, container, manifest } of workloads(manifests).filter(({ component }) => component !== "migrate")) {
      expect([component, manifest.spec.template.metadata.labels]).toEqual([component, expect.objectContaining(service.spec.selector)])
      expect([component, container.ports.map(({ name }: Manifest) => name)]).toEqual([component, expect.arrayContaining(["platform"])])
      expect(Object.keys(manifest.spec.template.metadata.labels)).toEqual(expect.arrayContaining(monitor.spec.podTargetLabels))
    }
  })

  test("lets only workers reach the internet, without private networks, and only the api be reached", async () => {
    const manifests = await render(required)
    const policies = ofKind(manifests, "NetworkPolicy")
    expect(policies.map(componentOf).sort()).toEqual(["api", "dispatcher", "migrate", "worker"])
    for (const policy of policies) {
      const component = componentOf(policy)
      const target = workloads(manifests).find((one) => one.component === component)
      expect(target?.manifest.spec.template.metadata.labels).toMatchObject(policy.spec.podSelector.matchLabels)
      expect(policy.spec.policyTypes).toEqual(["Ingress", "Egress"])
      const ports: ReadonlyArray<number> = policy.spec.egress.flatMap(({ ports }: Manifest) => ports.map(({ port }: Manifest) => port))
      const own = component === "migrate" ? [53, 53, 5432] : [53, 53, 5432, 7233]
      expect([component, ports]).toEqual([component, component === "worker" ? [...own, 443, 8443, 465, 587] : own])
      const blocks = policy.spec.egress.flatMap(({ to = [] }: Manifest) => to.flatMap(({ ipBlock }: Manifest) => ipBlock ?? []))
      expect([component, blocks.length]).toEqual([component, component === "worker" ? 2 : 0])
      if (component === "worker") {
        expect(blocks[0].except).toEqual(expect.arrayContaining(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"]))
      }
      const reached = policy.spec.ingress.flatMap(({ ports }: Manifest) => ports.map(({ port }: Manifest) => port))
      expect([component, reached]).toEqual([component, component === "api" ? ["api"] : []])
    }
    // What an operator names is all that is open.
    const named = ofKind(await render(everything), "NetworkPolicy").find((one) => componentOf(one) === "api")
    expect(named.spec.ingress).toEqual([
      { ports: [{ protocol: "TCP", port: "api" }], from: everything.networkPolicy.apiFrom },
      { ports: [{ protocol: "TCP", port: "platform" }], from: everything.networkPolicy.platformFrom }
    ])
    expect(named.spec.egress.map(({ to }: Manifest) => to).slice(1, 3)).toEqual([
      everything.networkPolicy.postgres.to,
      everything.networkPolicy.temporal.to
    ])
  })
})
