/** The value below which this share (0 to 1) of the values lies. */
export const percentile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const value = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  if (value === undefined) throw new Error('there is no percentile of no values')
  return value
}

/** The middle value; of an even number of values the mean of the two in the middle. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const half = (sorted.length - 1) / 2
  const middle = sorted.slice(Math.floor(half), Math.ceil(half) + 1)
  return middle.reduce((sum, value) => sum + value, 0) / middle.length
}

/** What repetitions came to: the median, and how far they lie apart. */
export type Spread = { median: number; min: number; max: number }

export const spreadOf = (values: readonly number[]): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
})

/** Three digits that matter, and no more. */
export const round = (value: number): number =>
  Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))

/** The milliseconds of each of many tasks, as figures. */
export const latencies = (ms: readonly number[]): { 'ms p50': number; 'ms p99': number } => ({
  'ms p50': percentile(ms, 0.5),
  'ms p99': percentile(ms, 0.99),
})
