import type { Repeated } from '../support/repeat.ts'
import { type Bar, barChart } from './bar-chart.ts'
import { lineChart, type Series } from './line-chart.ts'
import type { Measured } from './reach/reach.ts'

/** One figure of each variant that has it. */
const barsOf = (repeated: Repeated | undefined, figure: string, ours: readonly string[]): Bar[] =>
  Object.entries(repeated ?? {}).flatMap(([name, figures]) => {
    const value = figures[figure]
    return value ? [{ name, value, ours: ours.includes(name) }] : []
  })

/** One figure of the variants "<system> <actions>", over the actions. */
const overActions = (repeated: Repeated | undefined, system: string, figure: string): Series => ({
  name: system,
  points: Object.entries(repeated ?? {}).flatMap(([name, figures]) => {
    const y = figures[figure]?.median
    return name.startsWith(`${system} `) && y !== undefined
      ? [{ x: Number(name.slice(system.length + 1)), y }]
      : []
  }),
})

/** The charts of docs/performance.md by file name; charts without figures are left out. */
export const charts = (measured: Measured): Record<string, string> => {
  const bars = (file: string, title: string, unit: string, name: string, figure: string, ours: string[]) => {
    const found = barsOf(measured[name], figure, ours)
    return found.length > 0 ? { [file]: barChart(title, unit, found) } : {}
  }
  const lines = (file: string, title: string, figure: string) => {
    const series = ['Mason', 'LangGraph'].map((system) => overActions(measured.history, system, figure))
    return series.every(({ points }) => points.length > 0)
      ? { [file]: lineChart(title, 'actions of 2 KB in one run', series) }
      : {}
  }
  return {
    ...bars('append.svg', 'Milliseconds per durable action', 'ms', 'append', 'ms per action', ['Mason']),
    ...lines('history-seconds.svg', 'Seconds for the whole run', 'seconds'),
    ...lines('history-bytes.svg', 'Stored bytes per byte of payload', 'stored / payload'),
    ...bars('http-latency.svg', 'No-op run over HTTP, 1 client, p50', 'ms', 'http', 'ms p50', ['Mason']),
    ...bars('http-throughput.svg', 'No-op runs a second, 16 clients', 'runs/s', 'http', 'runs/s of 16', [
      'Mason',
    ]),
    ...bars('accept.svg', 'Durable accepts a second', 'POST/s', 'accept', 'POST/s', [
      'Redis up',
      'Redis down',
    ]),
  }
}
