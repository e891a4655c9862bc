import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { mapIssues, maxFieldErrors, toFieldErrors } from '../../src/state/resource-schema.ts'

test('a value of another type has one error, and none about its length', () => {
  const schema = z.object({
    prompt: z.string().min(1),
    files: z.array(z.string()).max(2),
    tags: z.array(z.string()),
  })
  const { error } = schema.safeParse({ prompt: [], files: 'abc', tags: [1, 2] })
  expect(error && toFieldErrors(error)).toEqual([
    { pointer: '/prompt', detail: expect.stringContaining('expected string') },
    { pointer: '/files', detail: expect.stringContaining('expected array') },
    { pointer: '/tags/0', detail: expect.stringContaining('expected string') },
    { pointer: '/tags/1', detail: expect.stringContaining('expected string') },
  ])
})

test('the errors of a union are those of its only member that has the type of the value', () => {
  const part = z.discriminatedUnion('type', [
    z.object({ type: z.literal('text'), text: z.string() }),
    z.object({ type: z.literal('image'), url: z.string() }),
  ])
  const day = z.union([z.iso.date(), z.iso.datetime()], { error: 'must be a day or a time' })
  const content = z.union([z.string(), z.array(part)], { error: 'must be a text or a list of parts' })
  const listErrors = (value: unknown) => {
    const { error } = z.object({ content, day: day.optional() }).safeParse(value)
    return error && toFieldErrors(error)
  }
  expect(listErrors({ content: 1 })).toEqual([
    { pointer: '/content', detail: 'must be a text or a list of parts' },
  ])
  expect(listErrors({ content: [{ type: 'text', text: 1 }, { type: 'image' }] })).toEqual([
    { pointer: '/content/0/text', detail: expect.stringContaining('expected string') },
    { pointer: '/content/1/url', detail: expect.stringContaining('expected string') },
  ])
  expect(listErrors({ content: [{ type: 'sound' }] })).toEqual([
    { pointer: '/content/0/type', detail: expect.stringContaining("'text' | 'image'") },
  ])
  expect(listErrors({ content: 'x', day: 'soon' })).toEqual([
    { pointer: '/day', detail: 'must be a day or a time' },
  ])
})

test('of very many errors, only those that are shown are described', () => {
  const { error } = z.array(z.string()).safeParse(Array(3 * maxFieldErrors).fill(null))
  const describe = vi.fn(() => 'wrong')
  expect(mapIssues(error?.issues ?? [], describe)).toHaveLength(maxFieldErrors)
  expect(describe).toHaveBeenCalledTimes(maxFieldErrors)
})
