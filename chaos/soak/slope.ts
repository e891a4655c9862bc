/** One quantity over time: `at` in hours, `bound` how much it may grow over the whole window and still count as flat. */
export type Series = {
  name: string
  unit: string
  bound: number
  points: readonly { at: number; value: number }[]
}

export type Slope = {
  /** Least squares, per hour, and its standard error. */
  perHour: number
  error: number
  /** What the slope makes of the window. */
  growth: number
}

export const slopeOf = (points: Series['points']): Slope => {
  const n = points.length
  const meanAt = points.reduce((sum, { at }) => sum + at, 0) / n
  const meanValue = points.reduce((sum, { value }) => sum + value, 0) / n
  const spread = points.reduce((sum, { at }) => sum + (at - meanAt) ** 2, 0)
  const perHour = points.reduce((sum, { at, value }) => sum + (at - meanAt) * (value - meanValue), 0) / spread
  const residual = points.reduce(
    (sum, { at, value }) => sum + (value - meanValue - perHour * (at - meanAt)) ** 2,
    0,
  )
  const error = Math.sqrt(residual / Math.max(1, n - 2) / spread)
  const window = (points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0)
  return { perHour, error, growth: perHour * window }
}

/**
 * Null when a series is flat: its slope is within two standard errors of none, or makes less over the window than
 * what is negligible. Samples that follow each other are alike, so the error is a low guess: hence the second way.
 */
export const findGrowth = ({ name, unit, bound, points }: Series): string | null => {
  if (points.length < 10) return `${name}: ${points.length} samples say nothing`
  const { perHour, error, growth } = slopeOf(points)
  if (perHour <= 2 * error || growth <= bound) return null
  return `${name} grows by ${perHour.toFixed(2)} ± ${error.toFixed(2)} ${unit} an hour, ${growth.toFixed(2)} ${unit} in the window`
}
