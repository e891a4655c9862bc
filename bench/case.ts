import type { Place } from './support/place.ts'

/** What one measurement found, by name; the name says the unit. */
export type Figures = Record<string, number>

/** One measurement, alone in a process of its own with a database and a queue of its own. */
export type Variant = (place: Place) => Promise<Figures>

/** A case of `npm run bench`: found by its file name, `cases/<name>.bench.ts`, as its default export. */
export type Case = {
  /** One sentence: what is measured, and what stands beside it. */
  about: string
  /** What `bench/compare.ts` sets against another commit. */
  ours: Record<string, Variant>
  /** Limits and peers, measured in the same run. */
  beside?: Record<string, Variant>
}
