import type { Repeated } from '../support/repeat.ts'
import { round } from '../support/statistics.ts'

export type Measured = Record<string, Repeated>

/** One figure of a line: what it came to, and what it had to. `unit` stands after the number. */
type Check = { value: number; unit: string; reach: number; stretch?: number; atLeast?: boolean }

export type Row = {
  what: string
  measured: string
  reach: string
  stretch: string
  verdict: 'reached' | 'stretch reached' | 'not reached' | 'not measured'
}

type Find = (name: string, variant: string, figure: string) => number

type Line = { what: string; checks(find: Find): Check[] }

/** Wrapper against bare, at the width where it does worst. */
const worstRatio = (find: Find, figures: readonly string[]): number =>
  Math.min(...figures.map((figure) => find('queue', 'Mason', figure) / find('queue', 'raw BullMQ', figure)))

const strategies = [
  'priority',
  'weighted',
  'least-busy',
  'cheapest',
  'priority, many cooling',
  'weighted, many cooling',
]
const bodies = [
  ['a completion by its format', 'a completion by hand'],
  ['four tool calls by their format', 'four tool calls by hand'],
  ['a stream of 303 events by its format', 'a stream of 303 events by hand'],
  ['16 embeddings by their format', '16 embeddings by hand'],
] as const

const ready = (find: Find, variant: string, seconds: number): Check[] => [
  { value: find('files', variant, 'seconds'), unit: 's', reach: seconds },
  { value: find('files', variant, 'MB'), unit: 'MB', reach: 500 },
]

/** The table "Reach" of issue 3, line by line, and the lines "Speed to reach" of issues 4 and 5. */
const lines: readonly Line[] = [
  {
    what: 'runtime cost per durable action on Postgres, whole loop included',
    checks: (find) => {
      const ms = find('append', 'Mason', 'ms per action')
      return [
        { value: ms, unit: 'ms', reach: 1.2, stretch: 0.7 },
        {
          value: ms / find('append', 'raw SQL', 'ms per action'),
          unit: 'x raw SQL',
          reach: 2.5,
          stretch: 1.5,
        },
      ]
    },
  },
  {
    what: 'the same at action 1000 against action 100',
    checks: (find) => [
      { value: find('growth', 'to 1000', '1000 / 100'), unit: 'x time', reach: 1.1 },
      { value: find('growth', 'to 1000', 'stored / payload'), unit: 'x payload stored', reach: 1.2 },
    ],
  },
  {
    what: 'the same at action 10,000 (a stretch goal)',
    checks: (find) => [
      { value: find('growth', 'to 10000', '10000 / 100'), unit: 'x time', reach: 1.1 },
      { value: find('growth', 'to 10000', 'stored / payload'), unit: 'x payload stored', reach: 1.2 },
    ],
  },
  {
    what: 'load a state of 1000 actions',
    checks: (find) => [{ value: find('load', 'as a worker', 'ms'), unit: 'ms', reach: 20, stretch: 10 }],
  },
  {
    what: 'no-op run over HTTP, submit to result, 1 client (peer: 558 ms)',
    checks: (find) => [
      { value: find('http', 'Mason', 'ms p50'), unit: 'ms p50', reach: 15, stretch: 8 },
      { value: find('http', 'Mason', 'ms p99'), unit: 'ms p99', reach: 30 },
    ],
  },
  {
    what: 'the same, 16 clients, 1 worker process (peer: 26 runs/s)',
    checks: (find) => [
      {
        value: find('http', 'Mason', 'runs/s of 16'),
        unit: 'runs/s',
        reach: 150,
        stretch: 300,
        atLeast: true,
      },
    ],
  },
  {
    what: 'submit to first event, seen by another process',
    checks: (find) => [
      { value: find('first-event', 'Mason', 'ms p50'), unit: 'ms p50', reach: 10 },
      { value: find('first-event', 'Mason', 'ms p99'), unit: 'ms p99', reach: 25 },
    ],
  },
  {
    what: 'durable accept, Redis up',
    checks: (find) => [
      { value: find('accept', 'Redis up', 'POST/s'), unit: 'POST/s', reach: 2000, atLeast: true },
    ],
  },
  {
    what: 'durable accept, Redis killed',
    checks: (find) => [
      { value: find('accept', 'Redis down', 'POST/s'), unit: 'POST/s', reach: 2000, atLeast: true },
    ],
  },
  {
    what: 'queue wrapper against raw BullMQ, at the width where it does worst',
    checks: (find) => [
      {
        value: 100 * worstRatio(find, ['sent/s', 'jobs/s at 1', 'jobs/s at 16', 'jobs/s at 64']),
        unit: '%',
        reach: 80,
        atLeast: true,
      },
    ],
  },
  {
    what: 'SSE, 500 clients x 20 events',
    checks: (find) => [{ value: find('sse', 'Mason', 'ms from submit'), unit: 'ms', reach: 300 }],
  },
  {
    what: 'worker start',
    checks: (find) => [
      { value: find('start', 'worker', 'seconds'), unit: 's', reach: 1.5, stretch: 0.8 },
      { value: find('start', 'worker', 'MB'), unit: 'MB', reach: 200, stretch: 130 },
    ],
  },
  {
    what: 'embedded: first start, and reopened',
    checks: (find) => [
      { value: find('start', 'embedded', 'seconds first'), unit: 's first', reach: 2.5 },
      { value: find('start', 'embedded', 'seconds reopened'), unit: 's reopened', reach: 1.2 },
    ],
  },
  {
    what: 'choosing model and key from the view in memory, by the strategy that does worst',
    checks: (find) => [
      {
        value: Math.max(...strategies.map((strategy) => find('choose', strategy, 'µs p50'))),
        unit: 'µs p50',
        reach: 50,
      },
    ],
  },
  {
    what: 'reading an answer by its format, on the body where it does worst',
    checks: (find) => [
      {
        value: Math.max(
          ...bodies.map(
            ([ours, hand]) => find('parse', ours, 'µs a body') / find('parse', hand, 'µs a body'),
          ),
        ),
        unit: 'x by hand',
        reach: 3,
      },
    ],
  },
  {
    what: 'the OpenAI-compatible door against its vendor called directly, 1 client and 64',
    checks: (find) => [
      {
        value: find('door', 'Mason', 'ms p50') - find('door', 'the vendor itself', 'ms p50'),
        unit: 'ms p50 added',
        reach: 1,
      },
      {
        value:
          (100 * find('door', 'Mason', 'answers/s of 64')) /
          find('door', 'the vendor itself', 'answers/s of 64'),
        unit: '% of its answers/s',
        reach: 80,
        atLeast: true,
      },
    ],
  },
  {
    what: 'searching the memories of one user among 50,000: 500 of them, and 20,000',
    checks: (find) => [
      { value: find('memory', 'Postgres, of 50000', '500: ms p50'), unit: 'ms p50', reach: 2 },
      {
        value: find('memory', 'Postgres, of 50000', '500: recall@10'),
        unit: 'recall',
        reach: 1,
        atLeast: true,
      },
      { value: find('memory', 'Postgres, of 50000', '20000: ms p50'), unit: 'ms p50', reach: 15 },
      {
        value: find('memory', 'Postgres, of 50000', '20000: recall@10'),
        unit: 'recall',
        reach: 0.98,
        atLeast: true,
      },
    ],
  },
  {
    what: 'the same with eight words to look for beside the vector',
    checks: (find) => [
      { value: find('memory', 'Postgres, of 50000', '500: ms p50 with words'), unit: 'ms p50', reach: 2 },
      { value: find('memory', 'Postgres, of 50000', '20000: ms p50 with words'), unit: 'ms p50', reach: 15 },
    ],
  },
  {
    what: 'a PDF of 200 pages is ready to be read',
    checks: (find) => ready(find, 'PDF of 200 pages', 10),
  },
  {
    what: 'a CSV of a million rows of eight columns is ready to be asked',
    checks: (find) => ready(find, 'CSV of 1,000,000 rows', 15),
  },
  {
    what: "a planner's prompt from 1,000 actions of one turn",
    checks: (find) => [
      {
        value: find('context', 'build from 1000 actions of one turn', 'ms CPU, first step'),
        unit: 'ms CPU',
        reach: 5,
      },
    ],
  },
  {
    what: "how much of a turn's first prompt the turn before sent as its beginning, and what all users' prompts begin with",
    checks: (find) => [
      {
        value: find('context', 'prefix over 100 turns', 'of all that was sent first'),
        unit: 'of the tokens',
        reach: 0.5,
        atLeast: true,
      },
      { value: find('context', 'prefix of all users', 'tokens'), unit: 'tokens', reach: 1024, atLeast: true },
    ],
  },
  {
    what: 'turn 100 of a session against turn 2, from claim to first action',
    checks: (find) => [
      {
        value:
          find('context', 'start of a turn', 'ms from claim to first action, turn 100') /
          find('context', 'start of a turn', 'ms from claim to first action, turn 2'),
        unit: 'x time',
        reach: 1.2,
      },
    ],
  },
]

/** Every line of the table with what was measured; a figure that is missing makes its line "not measured". */
export const reachRows = (measured: Measured): Row[] =>
  lines.map(({ what, checks }) => {
    const found = checks((name, variant, figure) => measured[name]?.[variant]?.[figure]?.median ?? Number.NaN)
    return {
      what,
      measured: found
        .map(({ value, unit }) => (Number.isNaN(value) ? '—' : `${round(value)} ${unit}`))
        .join(', '),
      reach: goals(found, ({ reach }) => reach),
      stretch: goals(found, ({ stretch }) => stretch),
      verdict: verdictOf(found),
    }
  })

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
