import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { openDeadline } from '../../src/state/deadline.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

test('a deadline fires though only its listener refers to it', async () => {
  const { signal } = openDeadline(30, new AbortController().signal)
  const collecting = setInterval(collect, 5)
  try {
    await once(signal, 'abort')
  } finally {
    clearInterval(collecting)
  }
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' })
})

test('a deadline aborts with its parent signal, also with one that has aborted', () => {
  const outer = new AbortController()
  using early = openDeadline(60_000, outer.signal)
  outer.abort(new Error('left'))
  expect(early.signal.reason).toMatchObject({ message: 'left' })
  using late = openDeadline(60_000, outer.signal)
  expect(late.signal.reason).toBe(outer.signal.reason)
})

test('a disposed deadline neither fires nor listens', () => {
  const outer = new AbortController()
  const { signal, ...deadline } = openDeadline(60_000, outer.signal)
  deadline[Symbol.dispose]()
  outer.abort()
  expect(signal.aborted).toBe(false)
})
