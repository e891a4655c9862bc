import { round } from '../support/statistics.ts'
import { colors, label, line, picture } from './svg.ts'

export type Series = { name: string; points: readonly { x: number; y: number }[] }

const width = 640
const height = 320
const frame = { left: 70, right: 520, top: 40, bottom: 270 }

/** Both axes logarithmic: a straight line that rises with slope 1 grows as its x does, a flat one not at all. */
export const lineChart = (title: string, xName: string, series: readonly Series[]): string => {
  const all = series.flatMap(({ points }) => points)
  const x = axis(
    all.map((point) => point.x),
    frame.left,
    frame.right,
  )
  const y = axis(
    all.map((point) => point.y),
    frame.bottom,
    frame.top,
  )
  const parts = [
    ...x.ticks.flatMap((tick) => [
      line(x.at(tick), frame.top, x.at(tick), frame.bottom),
      label(x.at(tick), frame.bottom + 18, `${tick}`, 'middle'),
    ]),
    ...y.ticks.flatMap((tick) => [
      line(frame.left, y.at(tick), frame.right, y.at(tick)),
      label(frame.left - 8, y.at(tick) + 4, `${tick}`, 'end'),
    ]),
    label((frame.left + frame.right) / 2, height - 12, xName, 'middle'),
    ...series.flatMap(({ name, points }, index) => {
      const color = colors[index % colors.length] ?? colors[0]
      const path = points.map((point) => `${x.at(point.x).toFixed(1)},${y.at(point.y).toFixed(1)}`).join(' ')
      const last = points.at(-1)
      return [
        `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"/>`,
        ...points.map(
          (point) =>
            `<circle cx="${x.at(point.x).toFixed(1)}" cy="${y.at(point.y).toFixed(1)}" r="3" fill="${color}"/>`,
        ),
        last ? label(frame.right + 10, y.at(last.y) + 4, `${name}: ${round(last.y)}`, 'start', color) : '',
      ]
    }),
  ]
  return picture(width, height, title, parts)
}

/** Whole powers of ten around the values, mapped to the range between two pixels. */
const axis = (values: readonly number[], from: number, to: number) => {
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))
  return {
    ticks: Array.from({ length: high - low + 1 }, (_, step) => Number((10 ** (low + step)).toPrecision(1))),
    at: (value: number) => from + ((Math.log10(value) - low) / (high - low)) * (to - from),
  }
}
