import type { Goal } from './goal.ts'

const replies = ['a thought of 10 MB', 'the body of a call of 10 MB', 'text of 10 MB', '10 MB of <']

/** The targets of issue 18: the language of the dialogue. */
export const dialogueGoals: readonly Goal[] = [
  {
    what: 'reading replies in the language of the dialogue, slowest reply',
    checks: (find) => [
      {
        value: Math.min(...replies.map((reply) => find('dialogue', reply, 'MB a second'))),
        unit: 'MB/s',
        reach: 100,
        atLeast: true,
      },
    ],
  },
  {
    what: 'the first tool after the end of a reply, and after one that is cut',
    checks: (find) => [
      {
        value: find('dialogue-run', 'the first tool after the end of a reply', 'ms p50'),
        unit: 'ms p50',
        reach: 5,
      },
      {
        value: find('dialogue-run', 'the first tool after a reply that is cut at <result', 'ms p50'),
        unit: 'ms p50',
        reach: 5,
      },
    ],
  },
  {
    what: 'ten tools of a second in one `<parallel>`',
    checks: (find) => [
      {
        value: find('dialogue-run', 'ten tools of a second in one <parallel>', 'seconds at most'),
        unit: 's',
        reach: 1.2,
      },
    ],
  },
]
