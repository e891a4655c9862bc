import { describe, expect, test } from 'vitest'
import { type ActionRow, foldActions } from '../../src/state/fold.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { estimateTokens } from '../../src/state/text/tokens.ts'
import { answer, body, plan } from '../support/actions.ts'
import { plannerMessages } from '../support/prompts.ts'

const positions = 200
const budget = 12_000
const words = 'river stone maple window copper garden signal harbour lantern meadow'.split(' ')
const filler = (n: number): string =>
  Array.from({ length: 60 }, (_, at) => words[(n * 7 + at * 3) % 10]).join(' ')

type Needle = { turn: number; where: 'user' | 'assistant' | 'action' }

/** One turn of talk and a result; the needle, where it is in this turn, in its place. */
const turnOf = (at: number, where?: Needle['where'], needle = ''): ActionRow[] => {
  const text = (own: Needle['where']): string => (where === own ? needle : filler(at))
  const first = (at - 1) * 5 + 1
  const judged = [{ id: first + 2, relevance: where === 'action' ? 0.9 : 0.3, important: false }]
  const actions: [ReturnType<typeof body>, object][] = [
    [
      body('load-session', { next: ['planner'] }),
      { prompts: text('user'), chat_history: [{ role: 'user', content: text('user'), turn: at }] },
    ],
    [plan([{ tool: 'look', args: { n: at } }]), {}],
    [answer('look', 0, { text: text('action') }), {}],
    [body('reflection', { result: { judged }, next: ['planner'] }), {}],
    [body('end'), { chat_history: [{ role: 'assistant', content: text('assistant'), turn: at }] }],
  ]
  return actions.map(([one, patch], n) => ({ seq: first + n, turn: at, body: one, patch }))
}

const base = foldActions(Array.from({ length: positions }, (_, at) => turnOf(at + 1)).flat())

/** 200 turns with the needle in one place, and a last turn that asks for it. */
const sessionWith = ({ turn, where }: Needle, question: string, needle: string): RuntimeState => {
  const changed = foldActions(turnOf(turn, where, needle))
  const [asked, answered] = changed.chat_history
  const state = {
    ...base,
    action_history: base.action_history.with(turn - 1, changed.action_history[turn - 1] ?? []),
    chat_history: base.chat_history.map((message, at) =>
      at === turn * 2 - 2 ? (asked ?? message) : at === turn * 2 - 1 ? (answered ?? message) : message,
    ),
  }
  const opening = body('load-session', { next: ['planner'] })
  const seq = positions * 5 + 1
  return foldActions([{ seq, turn: positions + 1, body: opening, patch: { prompts: question } }], state)
}

const promptFor = (needle: Needle, question: string, text: string): string =>
  plannerMessages(sessionWith(needle, question, text), { budget, canOpen: true })
    .map(({ content }) => content)
    .join('\n')

describe('a needle at any of 200 places of a session that is far larger than the prompt', () => {
  const question = 'Which vault code did Zephyr get?'
  const text = 'By the way, the vault code that Zephyr got is 4711-B.'
  test.each(['user', 'assistant', 'action'] as const)('is in the prompt: %s', (where) => {
    const missed: number[] = []
    // each kind takes every third place, so that together they are all looked at
    const offset = { user: 1, assistant: 2, action: 3 }[where]
    for (let turn = offset; turn <= positions; turn += 3) {
      const prompt = promptFor({ turn, where }, question, text)
      if (!prompt.includes('4711-B')) missed.push(turn)
      expect(estimateTokens(prompt)).toBeLessThanOrEqual(budget)
    }
    expect(missed).toEqual([])
  })

  test('is found in Chinese too', () => {
    const asked = '小王的保险柜密码是多少？'
    for (const turn of [1, 77, 150])
      expect(promptFor({ turn, where: 'user' }, asked, '小王的保险柜密码是 4711-B。')).toContain('4711-B')
  })
})
