import { expect, test } from 'vitest'
import { z } from 'zod'
import { toFieldErrors } from '../../src/state/resource-schema.ts'

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
