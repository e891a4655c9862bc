import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { AnyTool } from '../../src/graph/definitions.ts'
import { findReferenceErrors, listUsedSteps, resolveArguments } from '../../src/graph/references.ts'
import type { PlannedCall } from '../../src/state/calls.ts'
import type { Json } from '../../src/state/runtime-state.ts'

const python = {
  name: 'execute_python',
  input: z.strictObject({ code: z.string() }),
  raw: { field: 'code', language: 'python' as const },
}
const order: Pick<AnyTool, 'name' | 'input' | 'raw'> = {
  name: 'order',
  input: z.strictObject({
    note: z.string().optional(),
    count: z.int().optional(),
    items: z.array(z.strictObject({ id: z.union([z.string(), z.number()]) })).optional(),
    tags: z.array(z.string()).optional(),
  }),
}
const tools = new Map<string, Pick<AnyTool, 'raw'>>([
  ['execute_python', python],
  ['order', order],
])
const call = (index: number, tool: string, args: Record<string, Json>): PlannedCall => ({
  ...{ index, id: `c${index}`, tool, args },
})
const check = (calls: PlannedCall[], isSequential = true) =>
  findReferenceErrors(calls, (name) => tools.get(name), isSequential)
const resolve = (args: Record<string, Json>, ...texts: string[]) =>
  resolveArguments(order, call(texts.length, 'order', args), (step) => texts[step] ?? '')

describe('the references of a block', () => {
  test('can be in later steps of a sequential block, to steps before alone', () => {
    const first = call(0, 'order', { note: 'results[0]' })
    expect(
      check([
        first,
        call(1, 'order', { tags: ['{results[0]}'] }),
        call(2, 'execute_python', { code: 'a = "{results[1]}"' }),
      ]),
    ).toEqual([])
    expect(check([call(1, 'order', { note: '{results[1]}' })])).toHaveLength(1)
  })

  test.each<[string, PlannedCall, string]>([
    [
      'a step to itself',
      call(1, 'order', { note: 'a {results[1]}' }),
      'step 1 refers to {results[1]}, which is not a step before it; name a step from 0 to 0',
    ],
    [
      'a step to a later one',
      call(1, 'order', { tags: ['', '{results[2]}'] }),
      'step 1 refers to {results[2]}, which is not a step before it; name a step from 0 to 0',
    ],
    [
      'a step below zero',
      call(1, 'execute_python', { code: '"{results[-1]}"' }),
      'step 1 refers to {results[-1]}, which is not a step before it; name a step from 0 to 0',
    ],
    [
      'the first step',
      call(0, 'order', { note: '{results[0]}' }),
      'step 0 refers to {results[0]}, which is not a step before it; write the value itself',
    ],
    [
      'a raw literal',
      call(1, 'execute_python', { code: 'r"{results[0]}"' }),
      '{results[0]} is in a raw literal, where no result can be written; use the variable results[0] outside of the literal',
    ],
    [
      'bytes',
      call(1, 'execute_python', { code: 'b"{results[0]}"' }),
      '{results[0]} is in a bytes literal, where no result can be written; use the variable results[0] outside of the literal',
    ],
  ])('are refused from %s', (_, one, error) => {
    expect(check([one])).toEqual([{ index: one.index, error }])
  })

  test('are refused in any other block; what Python reads itself is none', () => {
    const error =
      '{results[0]} stands for a result only inside <sequential>; put the step that it names and this call into one <sequential>'
    expect(check([call(1, 'order', { note: 'see {results[0]}' })], false)).toEqual([{ index: 1, error }])
    expect(check([call(1, 'execute_python', { code: 'results = [1]; f"{results[0]}"' })], false)).toEqual([])
  })

  test('name the results that a step uses', () => {
    expect(
      listUsedSteps(order, call(3, 'order', { note: '{results[2]} {results[0]}', tags: ['{results[0]}'] })),
    ).toEqual([0, 2])
    expect(listUsedSteps(python, call(2, 'execute_python', { code: 'results[1] + "{results[0]}"' }))).toEqual(
      [0, 1],
    )
    expect(listUsedSteps(order, call(2, 'order', { note: 'results' }))).toEqual([])
  })
})

describe('the arguments of a step', () => {
  test('have results in place of the references, as text in text', () => {
    const text = 'a "quoted" \\ line\n{results[1]}'
    expect(resolve({ note: `see: {results[0]}`, tags: ['{results[0]}', 'x'] }, text, 'b')).toEqual({
      note: `see: ${text}`,
      tags: [text, 'x'],
    })
  })

  test('take JSON of the expected type where a reference is the whole value and no text fits', () => {
    expect(resolve({ count: '{results[0]}', note: '{results[0]}' }, ' 42\n')).toEqual({
      count: 42,
      note: ' 42\n',
    })
    expect(resolve({ items: '{results[0]}' }, '[{"id": "a"}]')).toEqual({ items: [{ id: 'a' }] })
    expect(resolve({ items: [{ id: '{results[0]}' }] }, '7')).toEqual({ items: [{ id: '7' }] })
  })

  test.each<[string, Record<string, Json>, string]>([
    ['no JSON', { count: '{results[0]}' }, 'many'],
    ['JSON of another type', { count: '{results[0]}' }, '"4"'],
    ['only a part of the value', { count: '1{results[0]}' }, '2'],
  ])('are an error where a number is expected and the result is %s', (_, args, text) => {
    expect(() => resolve(args, text)).toThrow(
      /^the arguments of order, with the results in them, are invalid: /,
    )
  })

  test('are an error where results of over 1 MB come in, in one reference or in many', () => {
    const error = 'the results that step 1 refers to are over 1 MB'
    expect(() => resolve({ note: '{results[0]}' }, 'a'.repeat(2 ** 20 + 1))).toThrow(error)
    expect(() => resolve({ note: '{results[0]}'.repeat(1e5) }, 'a'.repeat(1000))).toThrow(error)
    expect(resolve({ note: '{results[0]}' }, 'a'.repeat(2 ** 20)).note).toHaveLength(2 ** 20)
  })

  test('take JSON in as many places as are expected, without a look at all errors for each', () => {
    const tool = { name: 'add', input: z.strictObject({ numbers: z.array(z.int()) }) }
    const numbers = Array.from({ length: 100_000 }, () => '{results[0]}')
    const filled = resolveArguments(tool, call(1, 'add', { numbers }), () => '7') as { numbers: number[] }
    expect(new Set(filled.numbers)).toEqual(new Set([7]))
  })

  test('are a program with the results as text', () => {
    const code = 'a = "{results[0]}"; b = results[1]'
    const results = ['"; import os #', "'"]
    expect(
      resolveArguments(python, call(2, 'execute_python', { code }), (step) => results[step] ?? ''),
    ).toEqual({
      code: `results = [None, "'"]\na = "\\x22; import os #"; b = results[1]`,
    })
  })
})
