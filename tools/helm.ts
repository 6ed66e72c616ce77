/**
 * Helm and published schemas for tests of the chart, from the Go module proxy: Helm is built once and cached, which takes some
 * minutes; the schemas are files of the sources of Kubernetes and of the Prometheus Operator.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { cache } from "../test/support/servers.ts"

const HELM = "v3.22.0"
/** The version of Kubernetes whose schemas are used, and for which the chart is rendered. */
export const KUBERNETES = "v1.34.0"
const PROMETHEUS_OPERATOR = "v0.85.0"

const run = async (command: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Promise<string> => {
  if (Bun.which("go") === null) throw new Error("Go is missing. The tests of the Helm chart build Helm with it: install Go 1.25 or newer.")
  const child = Bun.spawn([...command], { cwd: cache, env: { ...process.env, ...env }, stdout: "pipe", stderr: "pipe" })
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}:\n${out}${error}`)
  return out.trim()
}

/** The path of Helm, built if it is not cached. */
export const helm = async (): Promise<string> => {
  const folder = path.join(cache, "helm", HELM)
  const file = path.join(folder, "helm")
  if (fs.existsSync(file)) return file
  fs.mkdirSync(folder, { recursive: true })
  await run(["go", "install", `helm.sh/helm/v3/cmd/helm@${HELM}`], { GOBIN: folder, CGO_ENABLED: "0" })
  return file
}

/** A schema of Kubernetes' API. */
export interface ApiSchema {
  readonly properties?: Readonly<Record<string, ApiSchema>>
  readonly "x-kubernetes-group-version-kind"?: ReadonlyArray<{ readonly group: string; readonly version: string; readonly kind: string }>
}

/** A JSON file of the sources of a Go module, kept in the cache. */
const sourceFile = async (name: string, module: string, version: string, file: string): Promise<unknown> => {
  const copy = path.join(cache, name, `${version}.json`)
  if (!fs.existsSync(copy)) {
    fs.mkdirSync(path.dirname(copy), { recursive: true })
    const { Dir } = JSON.parse(await run(["go", "mod", "download", "-json", `${module}@${version}`])) as { readonly Dir: string }
    fs.copyFileSync(path.join(Dir, file), `${copy}.new`)
    fs.renameSync(`${copy}.new`, copy)
  }
  return JSON.parse(fs.readFileSync(copy, "utf8"))
}

/** Kubernetes' published OpenAPI schemas by name. */
export const kubernetesSchemas = async (): Promise<Readonly<Record<string, ApiSchema>>> => {
  const read = await sourceFile("kubernetes", "k8s.io/kubernetes", KUBERNETES, "api/openapi-spec/swagger.json")
  return (read as { readonly definitions: Readonly<Record<string, ApiSchema>> }).definitions
}

/** The Prometheus Operator's schema of a ServiceMonitor. */
export const serviceMonitorSchema = async (): Promise<ApiSchema> => {
  const module = "github.com/prometheus-operator/prometheus-operator"
  const file = "jsonnet/prometheus-operator/servicemonitors-crd.json"
  const read = (await sourceFile("prometheus-operator", module, PROMETHEUS_OPERATOR, file)) as {
    readonly spec: { readonly versions: ReadonlyArray<{ readonly schema: { readonly openAPIV3Schema: ApiSchema } }> }
  }
  const [version] = read.spec.versions
  if (version === undefined) throw new Error(`${file} has no version`)
  return version.schema.openAPIV3Schema
}
