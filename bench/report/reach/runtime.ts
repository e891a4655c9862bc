import type { Find, Goal } from './goal.ts'

/** Our queue against bare BullMQ, at its worst concurrency. */
const worstRatio = (find: Find, figures: readonly string[]): number =>
  Math.min(...figures.map((figure) => find('queue', 'Mason', figure) / find('queue', 'raw BullMQ', figure)))

/** The targets of issue 3. */
export const runtimeGoals: readonly Goal[] = [
  {
    what: 'runtime cost per durable action on Postgres, whole loop included',
    checks: (find) => {
      const ms = find('append', 'Mason', 'ms per action')
      return [
        { value: ms, unit: 'ms', reach: 1.2, stretch: 0.7 },
        {
          value: ms / find('append', 'one connection, one row a commit', 'ms per action'),
          unit: 'x one connection, one row a commit',
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
    what: 'loading a state of 1000 actions',
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
    what: 'queue wrapper against raw BullMQ, at its worst concurrency',
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
]
