import { expect, test, vi } from 'vitest'
import { MasonError } from '../../src/state/errors.ts'
import type { ImageDescription } from '../../src/state/files/image-description.ts'
import type { OtherFile } from '../../src/state/files/prepared-files.ts'
import type { Files } from '../../src/state/ports/files.ts'
import type { ModelRequest, Models } from '../../src/state/ports/models.ts'
import type { OriginFile } from '../../src/state/runtime-state.ts'
import { describeImages } from '../../src/tools/files/describe-images.ts'

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const log = { debug() {}, info() {}, warn() {}, error() {} }

/** Images by name and what their bytes are; what models say of them is kept in memory. */
const settingOf = (
  images: Record<string, string>,
  answer: (request: ModelRequest, signal: AbortSignal) => string | Promise<string>,
) => {
  const origins = Object.keys(images).map(
    (name): OriginFile => ({ name, type: 'image/png', local_path: `blob:${name}`, mapping: null }),
  )
  const kept = new Map<string, ImageDescription>()
  const asked: ModelRequest[] = []
  const files: Pick<Files, 'read' | 'descriptions'> = {
    read: async ({ name }) => Buffer.from(images[name] ?? ''),
    descriptions: {
      find: async (hash) => kept.get(hash) ?? null,
      keep: async (hash, description) => void kept.set(hash, description),
    },
  }
  const models: Pick<Models, 'call' | 'hasVision'> = {
    hasVision: () => true,
    async call(request, signal) {
      signal.throwIfAborted()
      asked.push(request)
      const text = await answer(request, signal)
      return { text, reasoning: '', tool_calls: [], finish: 'stop', usage, model: 'up', by: 'eye' }
    },
  }
  const entry = (name: string): OtherFile => ({
    ...{ from: `blob:${name}`, format: 'image', readable: true, notes: [] },
    facts: { type: 'png', width: 1, height: 1, bytes: 1 },
  })
  const other_files = Object.fromEntries(Object.keys(images).map((name) => [name, entry(name)]))
  const run = (signal = new AbortController().signal) =>
    describeImages(
      { origin_files: [], documents: {}, tables: {}, other_files },
      origins,
      { files: files as Files, models: models as Models, log },
      signal,
    )
  return { run, asked, kept, files, models }
}
const reply = JSON.stringify({ description: 'A barn.', text: '' })

test('an image with the same bytes is described once, at the same time and later', async () => {
  const { run, asked } = settingOf({ a: 'x', b: 'x', c: 'y' }, () => reply)
  const first = await run()
  expect(first.described).toEqual(['a', 'b', 'c'])
  expect(first.usage.total_tokens).toBe(10)
  expect(asked.map(({ role }) => role)).toEqual(['vision', 'vision'])
  const again = await run()
  expect(again.usage.total_tokens).toBe(0)
  expect(again.prepared).toEqual(first.prepared)
  expect(asked).toHaveLength(2)
})

test('images beyond the limit of a turn have a note, and no model is called for them', async () => {
  const images = Object.fromEntries(Array.from({ length: 22 }, (_, n) => [`i${n}`, `${n}`]))
  const { run, asked } = settingOf(images, () => reply)
  const { described, prepared } = await run()
  expect([described.length, asked.length]).toEqual([20, 20])
  expect(prepared.other_files.i21?.notes[0]).toContain('only 20 images are described in a turn')
})

test('a description in plain words counts; an empty one does not, and is charged', async () => {
  const plain = settingOf({ a: 'x' }, () => 'Two dogs.')
  expect((await plain.run()).prepared.other_files.a?.facts.shows).toEqual({
    description: 'Two dogs.',
    text: '',
    by: 'eye',
  })
  const broken = settingOf({ a: 'x' }, () => '{"descr')
  const { prepared, usage: spent } = await broken.run()
  expect(prepared.other_files.a?.notes).toEqual([
    'what it shows is not described: the model gave no answer that can be read',
  ])
  expect(spent).toEqual(usage)
  expect(broken.kept.size).toBe(0)
})

test.each([
  ['model_unavailable', 1],
  ['model_bad_request', undefined],
] as const)('the image error "%s" is a note with its cost; calls: %s', async (code, tries) => {
  const { run } = settingOf({ a: 'x' }, () => {
    throw new MasonError(code, 'the model server is away', { detail: { usage } })
  })
  const { prepared, usage: spent } = await run()
  expect(prepared.other_files.a?.notes).toEqual(['what it shows is not described: the model server is away'])
  expect(prepared.other_files.a?.tries).toBe(tries)
  expect(spent).toEqual(usage)
})

test('an error of the database and an abort are not notes', async () => {
  const lost = settingOf({ a: 'x' }, () => {
    throw new MasonError('lease_lost', 'another worker has it')
  })
  await expect(lost.run()).rejects.toMatchObject({ code: 'lease_lost' })
  const { run } = settingOf({ a: 'x' }, () => reply)
  const reason = new Error('cancelled')
  await expect(run(AbortSignal.abort(reason))).rejects.toBe(reason)
})

/** Settles when `signal` aborts, with its reason. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('an error aborts the parallel calls before it is reported: no unread response is charged', async () => {
  let ended = 0
  let nth = 0
  const fault = new MasonError('lease_lost', 'another worker has it')
  const { run, asked } = settingOf({ a: '1', b: '2', c: '3', d: '4', e: '5' }, async (_, signal) => {
    if (++nth === 4) throw fault
    await untilAborted(signal).finally(() => ended++)
    return reply
  })
  await expect(run()).rejects.toBe(fault)
  expect([asked.length, ended]).toEqual([4, 3])
})

test('files that are being read when the time is over are abandoned, and no others are read', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const images = Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`i${n}`, `${n}`]))
    const { run, asked, files } = settingOf(images, () => reply)
    const read: string[] = []
    let started = (): void => {}
    const allRead = new Promise<void>((resolve) => {
      started = resolve
    })
    files.read = async ({ name }, signal) => {
      if (read.push(name) === 4) started()
      return await untilAborted(signal).catch(() => {
        throw new DOMException('as the disk says it', 'AbortError')
      })
    }
    const running = run()
    await allRead
    vi.runAllTimers()
    const { prepared } = await running
    const over = 'what it shows is not described: the time for describing images was over'
    expect(Object.values(prepared.other_files).map(({ notes, tries }) => [notes, tries])).toEqual(
      Array(6).fill([[over], 1]),
    )
    expect([read, asked]).toEqual([['i0', 'i1', 'i2', 'i3'], []])
  } finally {
    vi.useRealTimers()
  }
})

test.each([
  [{ passing: true }, 1],
  [undefined, undefined],
] as const)('bytes that cannot be read, with detail %o, are a note; calls: %s', async (detail, tries) => {
  const { run, files } = settingOf({ a: 'x' }, () => reply)
  files.read = () => Promise.reject(new MasonError('not_found', 'aws answered with status 503', { detail }))
  const { prepared } = await run()
  expect(prepared.other_files.a?.notes).toEqual([
    'what it shows is not described: aws answered with status 503',
  ])
  expect(prepared.other_files.a?.tries).toBe(tries)
})

test('an image without a vision model is marked for a later turn', async () => {
  const { run, models } = settingOf({ a: 'x' }, () => reply)
  models.hasVision = () => false
  expect((await run()).prepared.other_files.a).toMatchObject({ unseen: true })
})
