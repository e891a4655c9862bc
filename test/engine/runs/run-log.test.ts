import { expect, test } from 'vitest'
import { reportStarted } from '../../../src/engine/runs/run-log.ts'

test('waits say that they were started while they have no outcome, and not again', () => {
  const started: string[] = []
  const request = (refId: string) => ({
    kind: 'payment' as const,
    refId,
    onStarted: () => void started.push(refId),
  })
  const open = { outcome: null, is_poll_due: false }
  reportStarted(
    [request('new'), request('ended'), { kind: 'job', refId: 'without' }],
    [open, { ...open, outcome: { status: 'succeeded' } }, open],
  )
  expect(started).toEqual(['new'])
})
