import type { Find, Goal } from './goal.ts'

const lastHasTheEnd = (find: Find, variant: string): number =>
  find('a2a-stream', variant, 'ms until the last has the end')

/** The targets of issue 17: agents of others, and what is bought from them. */
export const agentGoals: readonly Goal[] = [
  {
    what: 'a purchase over A2A with the person present, in AP2 0.1 and 0.2: the time of Mason alone',
    checks: (find) =>
      ['AP2 0.1', 'AP2 0.2'].map((variant) => ({
        value: find('purchase', variant, 'ms of Mason'),
        ...{ unit: `ms in ${variant}`, reach: 150 },
      })),
  },
  {
    what: 'a no-op run by A2A message/send, over POST /v1/runs/wait',
    checks: (find) => [
      {
        value: find('a2a', 'A2A message/send', 'ms p50') - find('a2a', 'POST /v1/runs/wait', 'ms p50'),
        ...{ unit: 'ms p50 added', reach: 5 },
      },
    ],
  },
  {
    what: '500 agents that follow a run over A2A, beside 500 of the event stream',
    checks: (find) => [
      {
        value: lastHasTheEnd(find, 'A2A tasks/resubscribe') / lastHasTheEnd(find, 'GET /v1/runs/{id}/events'),
        ...{ unit: 'x the event stream', reach: 1.1 },
      },
    ],
  },
]
