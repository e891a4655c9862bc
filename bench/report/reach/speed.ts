import type { Check, Find, Goal } from './goal.ts'

const headline = (find: Find, figure: string): number => find('headline', 'Mason', figure)
const besideRestate = (find: Find, figure: string): number =>
  headline(find, figure) / find('headline', 'Restate', figure)
const throughput = (find: Find, clients: 16 | 64, stretch: number): Check => ({
  ...{ value: besideRestate(find, `runs/s of ${clients}`), unit: 'x runs/s' },
  ...{ reach: 1.1, stretch, atLeast: true },
})

/** The targets of issue 37. */
export const speedGoals: readonly Goal[] = [
  {
    what: 'no-op run over HTTP beside Restate, 1 client',
    checks: (find) => [
      { value: besideRestate(find, 'ms p50'), unit: 'x ms p50', reach: 1, stretch: 0.7 },
      { value: besideRestate(find, 'ms p99'), unit: 'x ms p99', reach: 1, stretch: 0.7 },
    ],
  },
  {
    what: 'the same, 16 clients, finished and learned from, 1 worker process',
    checks: (find) => [throughput(find, 16, 1.7)],
  },
  {
    what: 'the same, 64 clients, 2 worker processes',
    checks: (find) => [throughput(find, 64, 1.5)],
  },
  {
    what: 'processor time of such a run at 16 clients: all processes, and the worker',
    checks: (find) => [
      { value: headline(find, 'all CPU ms each'), unit: 'ms', reach: 10.2, stretch: 7 },
      { value: headline(find, 'worker CPU ms each'), unit: 'ms worker', reach: 4.5, stretch: 3.2 },
    ],
  },
  {
    what: 'commits and syncs of the WAL of such a run at 16 clients',
    checks: (find) => [
      { value: headline(find, 'commits each'), unit: 'commits', reach: 10 },
      { value: headline(find, 'syncs each'), unit: 'syncs', reach: 3 },
    ],
  },
]
