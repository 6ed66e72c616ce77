/** CPU profiles that `bun --cpu-prof` writes when the process ends. */
import * as fs from "node:fs"
import * as path from "node:path"

interface Profile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
    readonly children?: ReadonlyArray<number>
  }>
  /** Epoch microseconds. */
  readonly startTime: number
  readonly samples: ReadonlyArray<number>
  /** Microseconds between one sample and the next; none while the thread is idle. */
  readonly timeDeltas: ReadonlyArray<number>
}

const root = path.resolve(import.meta.dir, "../..")

/** The location of a function, without the folders above the repository. */
const placeOf = (url: string, line: number) => {
  if (url === "") return "native"
  const file = url.replace(/^file:\/\//, "").replace(`${root}/`, "")
  return `${file.replace(/^.*node_modules\//, "")}:${line + 1}`
}

/** The package of a file, or its room in `src`. */
const packageOf = (url: string) =>
  /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ??
  /\/((?:src|workflows)(?:\/[^/]+(?=\/))?)/.exec(url.replace(root, ""))?.[1] ??
  "runtime"

/** Code of the runtime itself: native, or one of its modules. */
const isRuntime = (url: string) => url === "" || /^(node|internal|bun):/.test(url)

/**
 * Where the samples between two times in epoch milliseconds are, as shares of all samples there: the functions with the
 * largest own shares, and the packages. Runtime code is named with its caller and belongs to the caller's package.
 * Only the main thread is profiled: workflow code runs in other threads.
 */
export const largest = (file: string, from: number, to: number, count = 10) => {
  const { nodes, samples, startTime, timeDeltas }: Profile = JSON.parse(fs.readFileSync(file, "utf8"))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ children = [], id }) => children.map((child) => [child, id] as const)))
  const labels = new Map(
    nodes.map(({ callFrame, id }) => {
      let caller = callFrame
      for (let up = parents.get(id); isRuntime(caller.url) && up !== undefined; up = parents.get(up))
        caller = byId.get(up)?.callFrame ?? caller
      const name = (frame: typeof callFrame) => (frame.functionName === "" ? "(anonymous)" : frame.functionName)
      const place = `${name(callFrame)} ${placeOf(callFrame.url, callFrame.lineNumber)}`
      const called = caller === callFrame ? "" : ` < ${name(caller)} ${placeOf(caller.url, caller.lineNumber)}`
      return [id, { function: place + called, package: packageOf(caller.url) }]
    })
  )
  const inside: Array<{ readonly function: string; readonly package: string }> = []
  let at = startTime / 1_000
  for (const [index, id] of samples.entries()) {
    at += (timeDeltas[index] ?? 0) / 1_000
    const label = labels.get(id)
    if (at >= from && at <= to && label !== undefined) inside.push(label)
  }
  const shares = (by: "function" | "package") =>
    [...Map.groupBy(inside, (label) => label[by])]
      .map(([what, { length }]) => ({ [by]: what, samples: length, percent: Math.round((length / inside.length) * 1_000) / 10 }))
      .sort((one, other) => other.samples - one.samples)
      .slice(0, count)
  return { functions: shares("function"), packages: shares("package") }
}
