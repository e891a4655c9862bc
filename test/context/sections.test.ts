import { describe, expect, test } from 'vitest'
import { fitParts, part, promptText, titles } from '../../src/context/sections.ts'
import { plannerPrompt } from '../../src/nodes/planner/messages.ts'
import { answer, body, plan, stateOf, todo } from '../support/actions.ts'

describe('the parts of a prompt', () => {
  test('make the text of a message: a title and a text each, empty ones left out', () => {
    const parts = [
      part(titles.user, ' Ada \n', 'profile'),
      part(titles.memory, '', 'memory'),
      part('', 'Go on.', 'agent'),
    ]
    expect(promptText(parts)).toBe('# User\nAda\n\nGo on.')
  })

  test('are cut as one text where they are too long', () => {
    const parts = [part(titles.plan, 'x'.repeat(4000), 'agent'), part(titles.task, 'do it', 'agent')]
    expect(fitParts(parts, 2000)).toBe(parts)
    const [only, ...others] = fitParts(parts, 500)
    expect(others).toEqual([])
    expect(only?.text).toMatch(
      /^# CURRENT PLAN STATUS\nx+\n\[cut: \d+ characters left out here\]\n[\s\S]*do it$/,
    )
  })

  test('of a planner are its messages but for earlier turns and rounds; the request stands without a title', () => {
    const todos = { todos: [todo('a', { task: 'Look' })] }
    const state = stateOf([
      [body('load-session'), todos],
      plan([{ tool: 'look' }]),
      answer('look', 0, { text: 'seen' }),
    ])
    const { messages, parts } = plannerPrompt(state, { budget: 9000, canOpen: true })
    const texts = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
    const untitled = parts.map((one) => (one.title === titles.request ? { ...one, title: '' } : one))
    expect(texts.join('\n\n')).toBe(promptText(untitled))
    expect(parts.filter(({ text }) => text !== '').map(({ title, origin }) => [title, origin])).toEqual([
      ['Request', 'user'],
      ['CURRENT PLAN STATUS', 'agent'],
      ['YOUR CURRENT TASK', 'agent'],
    ])
  })
})
