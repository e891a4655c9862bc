// backends: either

import { expect, onTestFinished } from 'vitest'
import { openFeed, type SessionChange } from '../../../src/engine/events/feed.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { openHints } from '../../../src/infra/queue/hints.ts'
import { test } from '../../support/integration-test.ts'
import { createJumpingClock } from '../../support/jumping-clock.ts'
import { appendAction, endLease, entry, mustClaim, submitTo } from '../../support/runs.ts'

test('a poll tells actions and a claim from what may be a status', async ({ database }) => {
  const clock = createJumpingClock()
  const hints = await openHints({ kind: 'embedded', log: silentLog })
  const feed = await openFeed({ sql: database, hints, clock, log: silentLog })
  onTestFinished(() => feed.close())
  const { id, session_id } = await submitTo(database, 'default')
  const seen: SessionChange[] = []
  feed.follow('default', session_id, { onChange: (change) => void seen.push(change), onDelta() {} })
  const pollAll = () => {
    clock.jump(1000)
    return seen
  }
  /** What the polls say until one says something: no hint comes, as where each is lost. */
  const poll = async (): Promise<SessionChange[]> => {
    const before = seen.length
    await expect.poll(() => pollAll().length).toBeGreaterThan(before)
    return seen.slice(before)
  }
  // one when each channel is subscribed to, one of the first poll
  await expect.poll(pollAll).toEqual(['status', 'status', 'status'])
  const claimed = await mustClaim(database)
  expect(await poll()).toEqual(['claimed'])
  await appendAction(database, claimed, entry(1))
  expect(await poll()).toEqual(['claimed'])
  await endLease(database, id)
  await database.query(`UPDATE runs SET status = 'waiting' WHERE run_id = $1`, [id])
  expect(await poll()).toEqual(['status'])
})
