import { expect, test } from 'vitest'
import { tellOrders } from '../../../src/engine/runs/run-log.ts'
import type { RunLog } from '../../../src/state/ports/run-log.ts'
import type { RunWait, WaitState } from '../../../src/state/ports/waits.ts'

test('a wait tells of an order of a payment while it has no outcome, and of nothing else', async () => {
  let told = 0
  const tell = (state: WaitState) =>
    tellOrders({ startWaits: async () => [state] } as unknown as RunLog, () => void told++)
  const call = { plan_seq: 1, index: 0 }
  const request = (kind: RunWait['kind']): RunWait[] => [{ kind, refId: 'id' }]
  const open = { outcome: null, is_poll_due: false }
  await tell(open).startWaits(call, 0, request('payment'))
  expect(told).toBe(1)
  await tell({ ...open, outcome: { status: 'succeeded' } }).startWaits(call, 0, request('payment'))
  await tell(open).startWaits(call, 0, request('job'))
  expect(told).toBe(1)
})
