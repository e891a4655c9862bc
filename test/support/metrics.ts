import type { Metrics } from '../../src/infra/telemetry/metrics.ts'

/** The values in a text for Prometheus, by name with labels. */
export const parseMetrics = (text: string): Map<string, number> =>
  new Map(
    text.split('\n').flatMap((line): [string, number][] => {
      const [, name, value] = /^(mason_\S+(?: [^{}]*)?) (\S+)$/.exec(line) ?? []
      return name === undefined ? [] : [[name, Number(value)]]
    }),
  )

/** The value of one metric of a runtime, such as `mason_runs{status="queued"}`; 0 where it has none. */
export const readMetric = async ({ metrics }: { metrics: Metrics }, name: string): Promise<number> =>
  parseMetrics(await metrics.text()).get(name) ?? 0
