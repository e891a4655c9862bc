import { describe, expect, test } from 'vitest'
import tool from '../../src/tools/read-result.tool.ts'
import { answer, body, plan, stateOf } from '../support/actions.ts'
import { visitTool } from '../support/tool-context.ts'

const text = Array.from({ length: 1500 }, (_, n) => `line ${n + 1} of the page`).join('\n')
const state = stateOf([
  body('load-session'),
  plan([{ tool: 'browse' }]),
  answer('browse', 0, { text, provenance: 'web' }),
])
const read = (input: object) => visitTool(tool, { input, state })

describe('read_result', () => {
  test('gives every character once, part by part, and keeps the label of what it reads', async () => {
    let all = ''
    for (let from = 0; from < text.length; ) {
      const visited = await read({ action_id: 3, from })
      expect(visited.action.result.provenance).toBe('web')
      const [head = '', ...rest] = visited.text.split('\n')
      const part = rest.join('\n').replace(/\n\[more: .*\]$/, '')
      all += part
      expect(head).toBe(`Result of action 3, characters ${from}-${from + part.length} of ${text.length}:`)
      from += part.length
    }
    expect(all).toBe(text)
  })

  test('finds lines by a pattern', async () => {
    const { text: found } = await read({ action_id: 3, pattern: 'line 77 ' })
    expect(found).toBe('1 lines of the result of action 3 match:\n77: line 77 of the page')
  })

  test.each([
    ['an action that is not there', { action_id: 99 }, /action 99 is not the result of a call/],
    ['what the planner thought', { action_id: 2 }, /action 2 is not the result of a call/],
    [
      'a place behind the end',
      { action_id: 3, from: 1_000_000 },
      /behind the end; the result has \d+ characters/,
    ],
    ['a bad pattern', { action_id: 3, pattern: '(' }, /./],
  ])('says what is wrong with %s', async (_, input, message) => {
    const visited = await read(input)
    expect(visited.isError).toBe(true)
    expect(visited.text).toMatch(message)
  })
})
