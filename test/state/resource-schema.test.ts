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

test('of very many errors, only those that are shown are described', () => {
  const { error } = z.array(z.string()).safeParse(Array(3 * maxFieldErrors).fill(null))
  const describe = vi.fn(() => 'wrong')
  expect(mapIssues(error?.issues ?? [], describe)).toHaveLength(maxFieldErrors)
  expect(describe).toHaveBeenCalledTimes(maxFieldErrors)
})
