import { expect, test } from 'vitest'
import type { FileProcess } from '../../src/files/file-process.ts'
import { createFileProcessPool } from '../../src/files/file-process-pool.ts'
import type { FileJob, FileReply, ProcessOptions } from '../../src/files/protocol/child-protocol.ts'
import { deferred } from '../support/deferred.ts'

const limits: ProcessOptions = { maxBytes: 1, maxMs: 1, readers: [] }
const job = (name: string): FileJob => ({ kind: 'reader', name, input: null })
const done: FileReply = { ok: true, output: null }
const { signal } = new AbortController()

/** All that follows of what is settled already. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Processes whose jobs end when the test says so; `begun` are the jobs that are under way, in the order they began. */
const openPlaces = (count: number) => {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  let alive = 0
  let most = 0
  const open = (): FileProcess => {
    alive += 1
    most = Math.max(most, alive)
    return {
      async run(asked) {
        const { name } = asked as Extract<FileJob, { kind: 'reader' }>
        const ended = deferred()
        ends.set(name, ended.resolve)
        begun.push(name)
        await ended.promise
        return done
      },
      async [Symbol.asyncDispose]() {
        alive -= 1
      },
    }
  }
  const processes = createFileProcessPool(count, open)
  return {
    processes,
    begun,
    most: () => most,
    alive: () => alive,
    end: async (name: string): Promise<void> => {
      ends.get(name)?.()
      await settled()
    },
    /** A step that has had this job done, and keeps its process for the next. */
    async rested(business: string, name: string) {
      const process = processes.openStep(business, limits)
      const asked = process.run(job(name), signal)
      await settled()
      ends.get(name)?.()
      await asked
      return process
    },
    /** One step of a business with these jobs, one after the other. */
    async step(business: string, jobs: readonly string[], until = signal): Promise<void> {
      await using process = processes.openStep(business, limits)
      for (const name of jobs) await process.run(job(name), until)
    },
  }
}

test('a business with many slow files holds up no other for more than one of them', async () => {
  const places = openPlaces(2)
  const slow = ['a', 'b', 'c', 'd'].map((name) => places.step('slow', [`${name}1`, `${name}2`, `${name}3`]))
  await settled()
  expect(places.begun).toEqual(['a1', 'b1'])
  const quick = places.step('quick', ['q1', 'q2'])
  await places.end('a1')
  // its own next file has to wait, and so do its other steps, which came first
  expect(places.begun).toEqual(['a1', 'b1', 'q1'])
  await places.end('q1')
  expect(places.begun).toEqual(['a1', 'b1', 'q1', 'q2'])
  await places.end('q2')
  await quick
  // alone again, it has both places, and a step keeps its process from file to file
  expect(places.begun.at(-1)).toBe('c1')
  await places.end('b1')
  expect(places.begun.at(-1)).toBe('b2')
  for (const name of places.begun) await places.end(name)
  await Promise.all(slow)
  expect(places.begun.toSorted()).toEqual(
    [...'abcd'].flatMap((name) => [1, 2, 3].map((n) => name + n)).concat('q1', 'q2'),
  )
  expect([places.most(), places.alive()]).toEqual([2, 0])
})

test('businesses take turns when there is one permit', async () => {
  const places = openPlaces(1)
  const steps = ['a', 'b', 'c'].map((business) => places.step(business, [`${business}1`, `${business}2`]))
  await settled()
  for (const name of ['a1', 'b1', 'c1', 'a2', 'b2', 'c2']) {
    expect(places.begun.at(-1)).toBe(name)
    await places.end(name)
  }
  await Promise.all(steps)
  expect([places.most(), places.alive()]).toEqual([1, 0])
})

test('an idle process releases its permit while its step fetches the next file, which then waits for a permit', async () => {
  const places = openPlaces(1)
  await using resting = await places.rested('a', 'a1')
  const other = places.step('b', ['b1'])
  await settled()
  expect(places.begun).toEqual(['a1', 'b1'])
  const second = resting.run(job('a2'), signal)
  await places.end('b1')
  await other
  await settled()
  expect(places.begun).toEqual(['a1', 'b1', 'a2'])
  await places.end('a2')
  expect(await second).toEqual(done)
})

test('a caller that aborts leaves the queue, and its permit goes to the next', async () => {
  const places = openPlaces(1)
  const first = places.step('a', ['a1'])
  const control = new AbortController()
  const given = places.step('b', ['b1'], control.signal)
  const third = places.step('c', ['c1'])
  control.abort(new Error('cancelled'))
  await expect(given).rejects.toThrow('cancelled')
  await places.end('a1')
  expect(places.begun).toEqual(['a1', 'c1'])
  await places.end('c1')
  await Promise.all([first, third])
  expect(places.alive()).toBe(0)
})

test('a step that begins to fetch releases its permit for another run of its business', async () => {
  const places = openPlaces(1)
  await using fetching = await places.rested('a', 'a1')
  const query = places.step('a', ['a2'])
  await settled()
  expect(places.begun).toEqual(['a1'])
  fetching.yieldProcess()
  await settled()
  expect(places.begun).toEqual(['a1', 'a2'])
  const second = fetching.run(job('a3'), signal)
  await places.end('a2')
  await query
  expect(places.begun).toEqual(['a1', 'a2', 'a3'])
  await places.end('a3')
  expect(await second).toEqual(done)
})
