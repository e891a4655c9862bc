import { round, type Spread } from '../support/statistics.ts'
import { colors, label, line, picture } from './svg.ts'

export type Bar = { name: string; value: Spread; ours: boolean }

const width = 640
const left = 270
const rowHeight = 30

/** Lying bars, the median as length and the spread as a whisker. */
export const barChart = (title: string, unit: string, bars: readonly Bar[]): string => {
  const longest = Math.max(...bars.map(({ value }) => value.max))
  const scale = (value: number): number => (value / longest) * (width - left - 110)
  const parts = bars.flatMap(({ name, value, ours }, index) => {
    const top = 40 + index * rowHeight
    const middle = top + 10
    return [
      label(left - 8, middle + 4, name, 'end'),
      `<rect x="${left}" y="${top}" width="${scale(value.median).toFixed(1)}" height="20" fill="${ours ? colors[0] : colors[2]}"/>`,
      line(left + scale(value.min), middle, left + scale(value.max), middle, '#111'),
      label(left + scale(value.max) + 8, middle + 4, `${round(value.median)} ${unit}`),
    ]
  })
  return picture(width, 50 + bars.length * rowHeight, title, parts)
}
