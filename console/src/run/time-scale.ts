import type { Action } from '../types.ts'

/** A bar of the timeline: what one action took, in shares of the width. */
export type Bar = { id: number; from: number; to: number; lane: number; isParallel: boolean }
/** A time in which nothing happened, drawn shorter than it was. */
export type Idle = { from: number; to: number; ms: number }
export type TimeScale = { bars: Map<number, Bar>; idles: Idle[]; lanes: number; ms: number }

/** Idle times of more than this share of the run are shortened, to the share below. */
const longIdle = 0.1
const shortened = 0.04

const spanOf = ({ started_at, at }: Action): [from: number, to: number] => {
  const end = Date.parse(at)
  return [started_at === null ? end : Math.min(Date.parse(started_at), end), end]
}

/** Places the actions on one line of time; those at the same time are side by side, on lanes. */
export const toTimeScale = (
  actions: readonly Action[],
  submittedAt: string,
  endedAt: string | null,
): TimeScale => {
  const spans = actions
    .map((action) => ({ id: action.id, span: spanOf(action) }))
    .sort((a, b) => a.span[0] - b.span[0])
  const start = Math.min(Date.parse(submittedAt), spans[0]?.span[0] ?? Number.POSITIVE_INFINITY)
  const end = spans.reduce(
    (latest, { span }) => Math.max(latest, span[1]),
    endedAt ? Date.parse(endedAt) : start,
  )
  const total = Math.max(1, end - start)

  // the times without work that are long, in order
  const gaps: [number, number][] = []
  let busyUntil = start
  for (const [from, to] of [...spans.map(({ span }) => span), [end, end] as const]) {
    if (from - busyUntil > total * longIdle) gaps.push([busyUntil, from])
    busyUntil = Math.max(busyUntil, to)
  }
  const cut = gaps.reduce((sum, [from, to]) => sum + to - from, 0)
  const rest = total - cut
  const short = gaps.length === 0 ? 0 : rest === 0 ? 1 / gaps.length : shortened
  const scale = (1 - gaps.length * short) / Math.max(1, rest)
  const place = (at: number): number => {
    let share = 0
    let from = start
    for (const gap of gaps) {
      if (at <= gap[0]) break
      share += (gap[0] - from) * scale
      share += at >= gap[1] ? short : ((at - gap[0]) / (gap[1] - gap[0])) * short
      from = Math.min(at, gap[1])
    }
    return Math.min(1, share + Math.max(0, at - from) * scale)
  }

  const laneEnds: number[] = []
  const bars = new Map<number, Bar>()
  let previous: { bar: Bar; end: number } | null = null
  for (const { id, span } of spans) {
    const free = laneEnds.findIndex((laneEnd) => laneEnd <= span[0])
    const lane = free === -1 ? laneEnds.length : free
    laneEnds[lane] = span[1]
    const isParallel: boolean = previous !== null && span[0] < previous.end
    const bar: Bar = { id, from: place(span[0]), to: place(span[1]), lane, isParallel }
    if (isParallel && previous) previous.bar.isParallel = true
    if (previous === null || span[1] > previous.end) previous = { bar, end: span[1] }
    bars.set(id, bar)
  }
  const idles = gaps.map(([from, to]) => ({ from: place(from), to: place(to), ms: to - from }))
  return { bars, idles, lanes: Math.max(1, laneEnds.length), ms: total }
}
