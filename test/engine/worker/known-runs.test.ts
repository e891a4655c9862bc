import { expect, test } from 'vitest'
import { createKnownRuns } from '../../../src/engine/worker/known-runs.ts'

/** Claims for a business as long as it may. */
const fill = (runs: ReturnType<typeof createKnownRuns>, tenant: string): number => {
  let many = 0
  for (; runs.mayTake(tenant) && !runs.claimOrder().excluded.includes(tenant); many++)
    runs.take({ tenant, run_id: `run-${many}`, stalls: 1 })
  return many
}

test('a business has at most four times the runs that are free besides: alone four fifths of all', () => {
  const runs = createKnownRuns(256)
  expect(['a', 'b', 'c', 'd', 'e', 'f'].map((tenant) => fill(runs, tenant))).toEqual([204, 41, 8, 2, 1, 0])
  expect(runs.mayTake()).toBe(false)
})

test('a business with half of the capacity comes after all others', () => {
  const runs = createKnownRuns(8)
  for (const run_id of ['1', '2', '3']) runs.take({ tenant: 'a', run_id, stalls: 1 })
  expect(runs.claimOrder()).toMatchObject({ excluded: [], last: [] })
  runs.take({ tenant: 'a', run_id: '4', stalls: 1 })
  expect(runs.claimOrder()).toMatchObject({ excluded: [], last: ['a'] })
  runs.release({ tenant: 'a', run_id: '4' }, true)
  expect(runs.claimOrder()).toMatchObject({ excluded: [], last: [] })
  expect(runs.has({ tenant: 'a', run_id: '4' })).toBe(true)
})

test('a worker whose heap is full takes no run besides those it has, and one where it has none', () => {
  let heap = 0.9
  const runs = createKnownRuns(8, () => heap)
  expect(runs.mayTake('a')).toBe(true)
  runs.take({ tenant: 'a', run_id: '1', stalls: 1 })
  expect([runs.mayTake('b'), runs.mayTake()]).toEqual([false, false])
  heap = 0.5
  expect([runs.mayTake('b'), runs.mayTake()]).toEqual([true, true])
})

test('a worker has one run at most that may end it, until that has committed an action', () => {
  const runs = createKnownRuns(256)
  const take = (run_id: string, stalls: number) => runs.take({ tenant: 'a', run_id, stalls })
  take('first claim', 1)
  take('after one death', 2)
  expect(runs.claimOrder().takesSuspects).toBe(true)
  take('after two', 3)
  expect(runs.claimOrder().takesSuspects).toBe(false)
  expect(runs.trust({ tenant: 'a', run_id: 'after one death' })).toBe(false)
  expect(runs.trust({ tenant: 'a', run_id: 'after two' })).toBe(true)
  expect(runs.claimOrder().takesSuspects).toBe(true)
  take('after four', 5)
  expect(runs.claimOrder().takesSuspects).toBe(false)
  runs.release({ tenant: 'a', run_id: 'after four' }, false)
  expect(runs.claimOrder().takesSuspects).toBe(true)
})

test('a run that is claimed again while its lost claim is at work here counts twice, and stays known', () => {
  const runs = createKnownRuns(256)
  const run = { tenant: 'a', run_id: '1', stalls: 3 }
  runs.take(run)
  runs.take(run)
  expect(runs.held).toBe(2)
  runs.release(run, false)
  expect([runs.held, runs.has(run), runs.claimOrder().takesSuspects]).toEqual([1, true, false])
  runs.release(run, false)
  expect([runs.held, runs.has(run), runs.claimOrder().takesSuspects]).toEqual([0, false, true])
})
