import { expect, test } from 'vitest'
import { MasonError } from '../../src/state/errors.ts'
import type { ImageDescription } from '../../src/state/files/image.ts'
import type { OtherFile } from '../../src/state/files/prepared.ts'
import type { Files, ModelRequest, Models } from '../../src/state/ports.ts'
import type { OriginFile } from '../../src/state/runtime-state.ts'
import { describeImages } from '../../src/tools/files/describe-images.ts'

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const log = { debug() {}, info() {}, warn() {}, error() {} }

/** Images by name and what their bytes are; what models say of them is kept in memory. */
const settingOf = (images: Record<string, string>, answer: (request: ModelRequest) => string) => {
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
  const models: Pick<Models, 'call' | 'sees'> = {
    sees: () => true,
    async call(request, signal) {
      signal.throwIfAborted()
      asked.push(request)
      const text = answer(request)
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
  return { run, asked, kept }
}
const told = JSON.stringify({ description: 'A barn.', text: '' })

test('same bytes are asked about once, at the same time and later', async () => {
  const { run, asked } = settingOf({ a: 'x', b: 'x', c: 'y' }, () => told)
  const first = await run()
  expect(first.described).toEqual(['a', 'b', 'c'])
  expect(first.usage.total_tokens).toBe(10)
  expect(asked.map(({ role }) => role)).toEqual(['vision', 'vision'])
  const again = await run()
  expect(again.usage.total_tokens).toBe(0)
  expect(again.prepared).toEqual(first.prepared)
  expect(asked).toHaveLength(2)
})

test('more images than a turn describes say so, and are not asked about', async () => {
  const images = Object.fromEntries(Array.from({ length: 22 }, (_, n) => [`i${n}`, `${n}`]))
  const { run, asked } = settingOf(images, () => told)
  const { described, prepared } = await run()
  expect([described.length, asked.length]).toEqual([20, 20])
  expect(prepared.other_files.i21?.notes[0]).toContain('only 20 images are described in a turn')
})

test('plain words count; an answer without any does not, and is paid for', async () => {
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
] as const)('%s is a note, with what it cost; tries: %s', async (code, tries) => {
  const { run } = settingOf({ a: 'x' }, () => {
    throw new MasonError(code, 'the model server is away', { detail: { usage } })
  })
  const { prepared, usage: spent } = await run()
  expect(prepared.other_files.a?.notes).toEqual(['what it shows is not described: the model server is away'])
  expect(prepared.other_files.a?.tries).toBe(tries)
  expect(spent).toEqual(usage)
})

test('a fault of the database, and an abort, are not notes', async () => {
  const lost = settingOf({ a: 'x' }, () => {
    throw new MasonError('lease_lost', 'another worker has it')
  })
  await expect(lost.run()).rejects.toMatchObject({ code: 'lease_lost' })
  const { run } = settingOf({ a: 'x' }, () => told)
  const reason = new Error('cancelled')
  await expect(run(AbortSignal.abort(reason))).rejects.toBe(reason)
})
