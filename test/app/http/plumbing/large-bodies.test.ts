import { setImmediate } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { expect, it } from 'vitest'
import { createLargeBodies, type Step } from '../../../../src/app/http/plumbing/large-bodies.ts'
import { parseJsonBody } from '../../../../src/app/http/plumbing/request-body.ts'
import { toAdmissionRequest } from '../../../../src/engine/runs/admission.ts'
import { sha256 } from '../../../../src/infra/lib/ids.ts'
import { contentHash } from '../../../../src/state/text/content-hash.ts'

it('large bodies are read one at a time, those of many from one caller after the one of another', async () => {
  const read = createLargeBodies()
  const order: string[] = []
  const begin = (caller: string) =>
    read(caller, async (step) => {
      order.push(`${caller} begins`)
      await step(() => undefined)
      order.push(`${caller} ends`)
    })
  await Promise.all([begin('many'), begin('many'), begin('many'), begin('one')])
  expect(order.map((line) => line.split(' ')[0])).toEqual(
    ['many', 'one', 'many', 'many'].flatMap((caller) => [caller, caller]),
  )
})

it('a body that cannot be read leaves its turn to the next', async () => {
  const read = createLargeBodies()
  const failed = read('a', (step) => step(() => Promise.reject(new Error('no JSON'))))
  const next = read('a', async () => undefined)
  await expect(failed).rejects.toThrow('no JSON')
  await next
})

it('the event loop turns before and after each step of a large body', async () => {
  const read = createLargeBodies()
  let turns = 0
  let isOver = false
  const count = async (): Promise<void> => {
    for (; !isOver; turns++) await setImmediate()
  }
  const counted = count()
  const seen: number[] = []
  await read('a', async (step) => {
    await step(() => seen.push(turns))
    await step(() => seen.push(turns))
  })
  isOver = true
  await counted
  expect(seen[0]).toBeGreaterThan(0)
  expect(seen[1]).toBeGreaterThan(seen[0] ?? 0)
  expect(turns).toBeGreaterThan(seen[1] ?? 0)
})

it('a large body is decoded in parts, of which none splits a letter, and a name of a prototype in it is refused', async () => {
  const parse = async (text: string, end = '') => {
    const steps: unknown[] = []
    const step: Step = async (work) => {
      const result = await work()
      steps.push(result)
      return result
    }
    const body = Buffer.concat([Buffer.from(text), Buffer.from(end, 'latin1')])
    const request = { body, headers: { 'content-type': 'application/json' } } as unknown as FastifyRequest
    return { value: await parseJsonBody(request, {}, step), steps }
  }
  const text = '漢ä'.repeat(1_000_001)
  const { value, steps } = await parse(JSON.stringify({ text }))
  expect(value).toEqual({ text })
  expect(steps.filter((one) => typeof one === 'string' && one.length < text.length)).toHaveLength(3)
  expect(await parse('{"a":[1,12345678901234567890]}')).toMatchObject({
    value: { a: [1, '12345678901234567890'] },
  })
  expect((await parse('{"":1,"a":12345678901234567890}')).value).toEqual({ '': 1, a: '12345678901234567890' })
  for (const name of ['__proto__', '\\u005f_proto__'])
    await expect(parse(`{"a":{"${name}":1}}`)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(parse(JSON.stringify({ text }), '\xff')).rejects.toMatchObject({ code: 'malformed_json' })
})

it.each([
  ['escapes', (much: number) => `{"a":"${'\\"'.repeat(much / 2)}"}`],
  ['spaces', (much: number) => `{"a":${' '.repeat(much)}1}`],
])('a body of %s is looked at in parts', async (_, make) => {
  let steps = 0
  const step: Step = async (work) => {
    steps++
    return work()
  }
  const read = async (text: string): Promise<number> => {
    steps = 0
    const headers = { 'content-type': 'application/json' }
    await parseJsonBody({ body: Buffer.from(text), headers } as unknown as FastifyRequest, {}, step)
    return steps
  }
  // decoded in parts, too
  expect((await read(make(8_000_000))) - (await read(make(20)))).toBe(6)
})

it('a body with a long number has as many escapes and digits as it likes', async () => {
  const read = (text: string) => {
    const request = { body: Buffer.from(text), headers: { 'content-type': 'application/json' } }
    return parseJsonBody(request as unknown as FastifyRequest, {}, (work) => Promise.resolve(work()))
  }
  // a regular expression that steps back overflows its stack from some millions on
  const digits = '9'.repeat(9_000_000)
  expect(await read(`{"a":-12345678901234567890,"b":"${'\\n'.repeat(5_000_000)}","c":${digits}}`)).toEqual({
    ...{ a: '-12345678901234567890', b: '\n'.repeat(5_000_000), c: digits },
  })
})

it('the hashes of a request with large files are those that it has in one piece', async () => {
  const files = ['a', 'b', ''].map((name, at) => ({
    ...{ name: `${name}.txt`, type: 'text/plain' },
    content_base64: Buffer.from(name.repeat(1_000_000 * (at + 1))).toString('base64'),
  }))
  const request = { prompt: 'Read "it".', user_id: 'ann', files }
  const { row, uploads } = await toAdmissionRequest(request)
  expect(row.hash).toBe(contentHash(request))
  expect(new Set(uploads.map(({ hash }) => hash))).toEqual(
    new Set(files.map(({ content_base64 }) => sha256(Buffer.from(content_base64, 'base64')))),
  )
})
