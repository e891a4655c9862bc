import { expect, test } from 'vitest'
import { openFeed } from '../../../src/engine/events/feed.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { openHints } from '../../../src/infra/queue/hints.ts'

test('a process in which callers wait for the ends of runs alone gets no hints of actions and text', async () => {
  const hints = await openHints({ kind: 'embedded', log: silentLog })
  const heard: string[] = []
  const feed = await openFeed({
    sql: { query: async () => ({ rows: [] }) },
    hints: {
      ...hints,
      subscribe: (channel, handler) =>
        hints.subscribe(channel, (message) => {
          heard.push(...(JSON.parse(message) as { kind: string }[]).map(({ kind }) => kind))
          handler(message)
        }),
    },
    clock: systemClock,
    log: silentLog,
  })
  const follower = { onChange() {}, onDelta() {} }
  const publishAll = () => {
    feed.publishChange('shop', 's', 'claimed')
    feed.publishChange('shop', 's', 'action')
    feed.publishDelta('shop', 's', { run_id: 'r', node: 'answer', call: null, attempt: 0, text: 'Hi' })
    feed.publishChange('shop', 's', 'status')
  }
  feed.follow('shop', 's', { ...follower, statusOnly: true })
  await expect
    .poll(() => {
      publishAll()
      return heard
    })
    .toContain('status')
  expect(new Set(heard)).toEqual(new Set(['status']))
  feed.follow('shop', 's', follower)
  await expect
    .poll(() => {
      publishAll()
      return [...new Set(heard)].sort()
    })
    .toEqual(['action', 'claimed', 'delta', 'status'])
  await feed.close()
  await hints.close()
})
