import type { Check, Find, Goal } from './goal.ts'

const ready = (find: Find, variant: string, seconds: number): Check[] => [
  { value: find('files', variant, 'seconds'), unit: 's', reach: seconds },
  { value: find('files', variant, 'MB'), unit: 'MB', reach: 500 },
]

/** The targets of issue 5: memory, files and prompts. */
export const userGoals: readonly Goal[] = [
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
    what: 'the same with eight words to match beside the vector',
    checks: (find) => [
      { value: find('memory', 'Postgres, of 50000', '500: ms p50 with words'), unit: 'ms p50', reach: 2 },
      { value: find('memory', 'Postgres, of 50000', '20000: ms p50 with words'), unit: 'ms p50', reach: 15 },
    ],
  },
  {
    what: 'preparing a PDF of 200 pages',
    checks: (find) => ready(find, 'PDF of 200 pages', 10),
  },
  {
    what: 'preparing a CSV of a million rows of eight columns',
    checks: (find) => ready(find, 'CSV of 1,000,000 rows', 15),
  },
  {
    what: "building a planner's prompt from 1,000 actions of one turn",
    checks: (find) => [
      {
        value: find('context', 'build from 1000 actions of one turn', 'ms CPU, first step'),
        unit: 'ms CPU',
        reach: 5,
      },
    ],
  },
  {
    what: "share of a turn's first prompt that the previous turn sent as its prefix, and the prefix common to all users",
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
