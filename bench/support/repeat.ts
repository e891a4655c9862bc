import type { Figures } from '../case.ts'
import type { Bench } from './measure.ts'
import { round, type Spread, spreadOf } from './statistics.ts'

export type Repeated = Record<string, Record<string, Spread>>

export type RepeatOptions = { repeat: number; scale: number; only: string }

/** Measures every variant of a case `repeat` times, the order turned round each time, and shows what came out. */
export const measureCase = async (
  bench: Bench,
  name: string,
  { repeat, scale, only }: RepeatOptions,
  signal: AbortSignal,
): Promise<Repeated> => {
  const { about, ours, beside = {} } = await bench.load(name)
  const variants = Object.keys({ ...beside, ...ours }).filter((variant) => variant.includes(only))
  console.log(`\n${name}: ${about}`)
  const found = new Map<string, Figures[]>(variants.map((variant) => [variant, []]))
  for (let repetition = 0; repetition < repeat; repetition++)
    for (const variant of repetition % 2 === 0 ? [...found.keys()] : [...found.keys()].reverse())
      try {
        found.get(variant)?.push(await bench.measure(name, variant, scale, signal))
      } catch (error) {
        // a peer that cannot be had here keeps nothing else from being measured
        if (signal.aborted || variant in ours) throw error
        console.log(`  ${variant}: not measured: ${(error as Error).message}`)
        found.delete(variant)
      }
  const repeated = Object.fromEntries([...found].map(([variant, figures]) => [variant, spreadsOf(figures)]))
  show(repeated)
  return repeated
}

const spreadsOf = (figures: readonly Figures[]): Record<string, Spread> =>
  Object.fromEntries(
    Object.keys(figures[0] ?? {}).map((figure) => [
      figure,
      spreadOf(figures.flatMap((each) => each[figure] ?? [])),
    ]),
  )

const show = (repeated: Repeated): void => {
  for (const [variant, figures] of Object.entries(repeated))
    for (const [figure, { median, min, max }] of Object.entries(figures))
      console.log(
        `  ${variant.padEnd(34)} ${figure.padEnd(34)} ${String(round(median)).padStart(9)}   (${round(min)} to ${round(max)})`,
      )
}
