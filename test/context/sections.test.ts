import { describe, expect, test } from 'vitest'
import { renderPlan } from '../../src/context/context.ts'
import { noText, part, promptText, titles } from '../../src/context/sections.ts'
import { plannerPrompt } from '../../src/nodes/planner/messages.ts'
import { createDataFence, ownText } from '../../src/state/provenance.ts'
import { answer, body, plan, stateOf, todo } from '../support/actions.ts'

describe('the parts of a prompt', () => {
  test('make the text of a message: a title and a text each, empty ones left out', () => {
    const parts = [
      part(titles.user, ownText`Ada`, 'profile'),
      part(titles.memory, noText, 'memory'),
      part(noText, ownText`Go on.`, 'agent'),
    ]
    expect(promptText(parts)).toBe('# User\nAda\n\nGo on.')
  })

  test('of a plan are cut within their fences where they are too long', () => {
    const long = todo('a', { task: 'x'.repeat(4000), execution_tips: 'y'.repeat(4000) })
    const fence = createDataFence({ prompts: ['x'] })
    for (const { text } of renderPlan({ todos: [[long]] }, 500, fence)) {
      expect(text).toMatch(
        /^<(data-\w+) agent>\n[\s\S]*\n\[cut: \d+ characters left out here\]\n[\s\S]*\n<\/\1>$/,
      )
      expect(text.length).toBeLessThan(1200)
    }
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
    const untitled = parts.map((one) => (one.title === titles.request ? { ...one, title: noText } : one))
    expect(texts.join('\n\n')).toBe(promptText(untitled))
    expect(parts.filter(({ text }) => text !== '').map(({ title, origin }) => [title, origin])).toEqual([
      ['Request', 'user'],
      ['CURRENT PLAN STATUS', 'agent'],
      ['YOUR CURRENT TASK', 'agent'],
    ])
  })
})
