import type { Repeated } from '../../support/repeat.ts'
import { round } from '../../support/statistics.ts'
import { agentGoals } from './agents.ts'
import { dialogueGoals } from './dialogue.ts'
import type { Check } from './goal.ts'
import { registryGoals } from './registry.ts'
import { runtimeGoals } from './runtime.ts'
import { speedGoals } from './speed.ts'
import { userGoals } from './user.ts'

export type Measured = Record<string, Repeated>

export type Row = {
  what: string
  /** The cases whose figures it has. */
  cases: string[]
  measured: string
  reach: string
  stretch: string
  verdict: 'reached' | 'stretch reached' | 'not reached' | 'not measured'
}

/** Every line of the table of targets with its measurement; a missing figure makes its line "not measured". */
export const reachRows = (measured: Measured): Row[] =>
  [...runtimeGoals, ...speedGoals, ...registryGoals, ...userGoals, ...agentGoals, ...dialogueGoals].map(
    ({ what, checks }) => {
      const cases = new Set<string>()
      const found = checks((name, variant, figure) => {
        cases.add(name)
        return measured[name]?.[variant]?.[figure]?.median ?? Number.NaN
      })
      return {
        what,
        cases: [...cases],
        measured: found
          .map(({ value, unit }) => (Number.isNaN(value) ? '—' : `${round(value)} ${unit}`))
          .join(', '),
        reach: goals(found, ({ reach }) => reach),
        stretch: goals(found, ({ stretch }) => stretch),
        verdict: verdictOf(found),
      }
    },
  )

const goals = (checks: readonly Check[], goal: (check: Check) => number | undefined): string =>
  checks
    .filter((check) => goal(check) !== undefined)
    .map((check) => `${check.atLeast ? '>=' : '<='} ${goal(check)} ${check.unit}`)
    .join(', ')

const holds = ({ value, atLeast }: Check, goal: number): boolean => (atLeast ? value >= goal : value <= goal)

const verdictOf = (checks: readonly Check[]): Row['verdict'] => {
  if (checks.some(({ value }) => !Number.isFinite(value))) return 'not measured'
  if (!checks.every((check) => holds(check, check.reach))) return 'not reached'
  const stretched = checks.filter(({ stretch }) => stretch !== undefined)
  const isStretched = stretched.every((check) => holds(check, check.stretch ?? Number.NaN))
  return stretched.length > 0 && isStretched ? 'stretch reached' : 'reached'
}
