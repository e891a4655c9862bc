import type { Case } from '../case.ts'
import { openPlace, type PlaceOptions } from './place.ts'

/** `node measure-process.js '<JSON of MeasureTask>'`: one measurement in a process of its own; tells its figures over IPC. */
export type MeasureTask = PlaceOptions & { name: string; variant: string }

const { name, variant, ...options } = JSON.parse(process.argv[2] ?? '') as MeasureTask
const { default: found } = (await import(`../cases/${name}.bench.js`)) as { default: Case }
const run = found.ours[variant] ?? found.beside?.[variant]
if (!run) throw new Error(`the case "${name}" has no variant "${variant}"`)

const place = await openPlace(options)
let leaving = false

/** Whatever happens, nothing of this measurement is left behind; the first error is the one reported. */
const leave = async (fault?: unknown): Promise<void> => {
  if (leaving) return
  leaving = true
  if (fault !== undefined) console.error(fault)
  await place[Symbol.asyncDispose]()
  process.exit(fault === undefined ? 0 : 1)
}
process.on('SIGTERM', () => void leave('stopped from outside'))
process.on('uncaughtException', (fault) => void leave(fault))

try {
  const figures = await run(place)
  process.send?.(figures, () => void leave())
} catch (fault) {
  await leave(fault)
}
