/**
 * Effect's metrics as Prometheus text. Counters, gauges, histograms and frequencies; characters that Prometheus does not
 * allow become `_`.
 */
import { Array as Arr, Metric, type MetricKey, MetricState, Option } from "effect"

type Pair = ReturnType<typeof Metric.unsafeSnapshot>[number]

const nameOf = (key: MetricKey.MetricKey.Untyped) => key.name.replaceAll(/[^a-zA-Z0-9_:]/g, "_")

const labels = (key: MetricKey.MetricKey.Untyped, extra: Readonly<Record<string, string>> = {}): string => {
  const all = [...key.tags.map(({ key, value }) => [key, value] as const), ...Object.entries(extra)]
  return all.length === 0 ? "" : `{${all.map(([name, value]) => `${name.replaceAll(/[^a-zA-Z0-9_]/g, "_")}="${escape(value)}"`).join(",")}}`
}

const escape = (value: string) => value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"')

const number = (value: number) => (value === Number.POSITIVE_INFINITY ? "+Inf" : String(value))

const lines = ({ metricKey: key, metricState: state }: Pair): { readonly type: string; readonly samples: ReadonlyArray<string> } => {
  const name = nameOf(key)
  if (MetricState.isCounterState(state)) return { type: "counter", samples: [`${name}${labels(key)} ${state.count}`] }
  if (MetricState.isGaugeState(state)) return { type: "gauge", samples: [`${name}${labels(key)} ${state.value}`] }
  if (MetricState.isFrequencyState(state)) {
    return { type: "counter", samples: [...state.occurrences].map(([value, count]) => `${name}${labels(key, { value })} ${count}`) }
  }
  if (MetricState.isHistogramState(state)) {
    return {
      type: "histogram",
      samples: [
        ...state.buckets.map(([bound, count]) => `${name}_bucket${labels(key, { le: number(bound) })} ${count}`),
        `${name}_sum${labels(key)} ${state.sum}`,
        `${name}_count${labels(key)} ${state.count}`
      ]
    }
  }
  return { type: "untyped", samples: [] }
}

/** Every metric of the process, in the text format that Prometheus scrapes. */
export const render = (): string => {
  const byName = Arr.groupBy(Metric.unsafeSnapshot(), ({ metricKey }) => nameOf(metricKey))
  return Object.entries(byName)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, pairs]) => {
      const parts = pairs.map(lines)
      const help = Option.getOrElse(pairs[0].metricKey.description, () => name)
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${parts[0]?.type ?? "untyped"}`, ...parts.flatMap(({ samples }) => samples)]
    })
    .join("\n")
    .concat("\n")
}
