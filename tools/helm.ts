/**
 * Helm and Kubernetes' published schemas for tests of the chart, from the Go module proxy: Helm is built once and cached,
 * which takes some minutes; the schemas are a file of the sources of Kubernetes.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { cache } from "../test/support/servers.ts"

const HELM = "v3.22.0"
/** The version of Kubernetes whose schemas are used, and for which the chart is rendered. */
export const KUBERNETES = "v1.34.0"

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

/** Kubernetes' published OpenAPI schemas by name. */
export const kubernetesSchemas = async (): Promise<Readonly<Record<string, ApiSchema>>> => {
  const file = path.join(cache, "kubernetes", `${KUBERNETES}.json`)
  if (!fs.existsSync(file)) {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    const { Dir } = JSON.parse(await run(["go", "mod", "download", "-json", `k8s.io/kubernetes@${KUBERNETES}`])) as { readonly Dir: string }
    fs.copyFileSync(path.join(Dir, "api", "openapi-spec", "swagger.json"), `${file}.new`)
    fs.renameSync(`${file}.new`, file)
  }
  return (JSON.parse(fs.readFileSync(file, "utf8")) as { readonly definitions: Readonly<Record<string, ApiSchema>> }).definitions
}
