import type { Finding } from './verdict.ts'
import type { World } from './world.ts'

const maxTold = 20

/** The faults for people: what, about which run, and what the processes' logs say of it. */
export const describeFailures = (world: World, faults: readonly Finding[]): string[] => {
  const first = faults.slice(0, maxTold).map(({ about, what }) => {
    const logs = world.processes.mentions(about)
    return [`${about}: ${what}`, ...logs].join('\n    ')
  })
  if (faults.length === 0) return []
  return [...first, `${faults.length} faults in all; logs and ledger stand in ${world.folder}`]
}
