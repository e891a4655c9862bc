import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type AnyTool, defineTool } from '../../src/graph/definitions.ts'
import { interpretReply } from '../../src/nodes/planner/dialects/interpret.ts'
import { reply, type Said } from '../support/memory-run.ts'

const tool = (name: string, pure: boolean): AnyTool =>
  defineTool({
    name,
    description: name,
    kinds: ['call'],
    pure,
    input: z.strictObject({ query: z.string() }),
    reads: [],
    writes: [],
    run: async () => null as never,
  })
const tools = [tool('look', true), tool('send', false)]
const outputs = [tool('answer', true), tool('report', true)]
const read = (said: Said) => interpretReply(reply(said), { tools, outputs })
const call = (name: string, args: unknown = { query: 'q' }, id?: string) => ({
  name,
  arguments: args,
  ...(id !== undefined && { id }),
})

describe('reading a reply of the planner', () => {
  test('calls that check keep their order, their ids and their arguments', () => {
    expect(
      read({ tool_calls: [call('look', { query: 'b' }, 'x'), call('look', { query: 'a' }, 'y')] }),
    ).toMatchObject({
      calls: [
        { index: 0, id: 'x', tool: 'look', args: { query: 'b' } },
        { index: 1, id: 'y', tool: 'look', args: { query: 'a' } },
      ],
      block: 'parallel',
      errors: [],
    })
  })

  test('calls of which one changes something run in order', () => {
    expect(read({ tool_calls: [call('look'), call('send')] })).toMatchObject({
      block: 'sequential',
      leading_reads: 1,
    })
    expect(read({ tool_calls: [call('send'), call('look')] })).toMatchObject({
      block: 'sequential',
      leading_reads: 0,
    })
  })

  test('an id that appears twice is made unique', () => {
    const ids = read({ tool_calls: [call('look', undefined, 'x'), call('look', undefined, 'x')] }).calls.map(
      ({ id }) => id,
    )
    expect(new Set(ids).size).toBe(2)
  })

  test.each([
    ['{"query": "half', /not a JSON object/],
    ['["a list"]', /not a JSON object/],
    ['"text"', /not a JSON object/],
    [{ query: 1 }, /arguments of look are invalid.*query/s],
    [{ query: 'q', more: 1 }, /arguments of look are invalid.*more/s],
  ])('arguments %j are refused with what is wrong', (args, message) => {
    const found = read({ tool_calls: [call('look', args)] })
    expect(found.calls).toEqual([])
    expect(found.errors[0]?.error).toMatch(message)
  })

  test('a tool that is not there is refused with those that are', () => {
    expect(read({ tool_calls: [call('fly')] }).errors[0]?.error).toBe(
      'there is no tool "fly"; the tools are: look, send',
    )
  })

  test('of many tools that are not there the first has the list of those that are', () => {
    const { errors } = read({ tool_calls: Array.from({ length: 1000 }, (_, at) => call(`fly_${at}`)) })
    expect(errors).toHaveLength(1000)
    expect(errors.filter(({ error }) => error.includes('look, send'))).toEqual([errors[0]])
    expect(errors[999]?.error).toBe('there is no tool "fly_999"')
  })

  test('no arguments at all stand for none', () => {
    expect(read({ tool_calls: [call('report', '')] })).toMatchObject({
      errors: [],
      output: { tool: 'report' },
    })
  })

  test('an output call alone is the end, with its text as the draft', () => {
    expect(read({ tool_calls: [call('report', { text: 'All sold.' })] }).output).toMatchObject({
      tool: 'report',
      draft: 'All sold.',
    })
    expect(read({ text: 'All sold.', tool_calls: [call('report', {})] }).output?.draft).toBe('All sold.')
  })

  test('an output call beside other calls is dropped, with a note', () => {
    const found = read({ tool_calls: [call('report', {}), call('look')] })
    expect(found).toMatchObject({ output: null, calls: [{ tool: 'look' }] })
    expect(found.notes[0]).toMatch(/report was called beside other tools and was dropped/)
  })

  test('update_todos is no call', () => {
    const found = read({
      tool_calls: [call('update_todos', { todos: [{ id: 'a', task: 'do a' }] }), call('look')],
    })
    expect(found.calls.map(({ tool }) => tool)).toEqual(['look'])
    expect(found.todos[0]?.wanted).toEqual([{ id: 'a', task: 'do a' }])
    expect(read({ tool_calls: [call('update_todos', { todos: 'none' })] }).errors[0]?.error).toMatch(
      /arguments of update_todos are invalid/,
    )
  })
})
