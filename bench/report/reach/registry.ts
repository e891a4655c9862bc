import type { Goal } from './goal.ts'

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

/** The targets of issue 4 for the registry and the OpenAI-compatible endpoint. */
export const registryGoals: readonly Goal[] = [
  {
    what: 'choosing model and key in memory, slowest strategy',
    checks: (find) => [
      {
        value: Math.max(...strategies.map((strategy) => find('choose', strategy, 'µs p50'))),
        unit: 'µs p50',
        reach: 50,
      },
    ],
  },
  {
    what: 'reading an answer by its format, slowest body',
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
    what: 'the OpenAI-compatible endpoint against its vendor called directly, 1 client and 64',
    checks: (find) => [
      {
        value:
          find('openai-endpoint', 'Mason', 'ms p50') - find('openai-endpoint', 'the vendor itself', 'ms p50'),
        unit: 'ms p50 added',
        reach: 1,
      },
      {
        value:
          (100 * find('openai-endpoint', 'Mason', 'answers/s of 64')) /
          find('openai-endpoint', 'the vendor itself', 'answers/s of 64'),
        unit: '% of its answers/s',
        reach: 80,
        atLeast: true,
      },
    ],
  },
]
