import { describe, expect, test } from 'vitest'
import type { AdmittedRequest } from '../../src/state/run-request.ts'
import { checkInvariants } from '../support/invariants.ts'
import { memoryRun, modelsOf, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

/** A run that looks for ever, each time at something else, until a limit ends it. */
const limited = async (
  request: Partial<AdmittedRequest>,
  work = ({ n }: { n?: unknown }) => `found ${n}`,
) => {
  const memory = memoryRun({ prompt: 'Look.', ...request })
  const models = modelsOf(({ role }, nth) =>
    role === 'planner' ? { tool_calls: [{ name: 'look', arguments: { n: nth } }] } : { text: '' },
  )
  const { state } = await workOn(await graphWith([callTool('look', work)]), memory, { models })
  checkInvariants(state)
  return { memory, state, models, outcome: memory.ended?.outcome, answer: memory.ended?.result.answer }
}

describe('the end by a limit', () => {
  test.each([4, 5, 6, 7, 8, 9, 12])('max_steps %i is never exceeded', async (max_steps) => {
    const { memory, outcome } = await limited({ limits: { max_steps } })
    expect(memory.rows.length).toBeLessThanOrEqual(max_steps)
    expect(outcome).toEqual({ status: 'completed', reason: 'steps' })
  })

  test('gives the results by rule, without a further call', async () => {
    const { answer, models, state } = await limited({ limits: { max_steps: 8 } })
    expect(answer).toBe(
      'This is not a full answer: the limit of steps was reached. What was found so far:\n- found 1\n- found 2',
    )
    expect(models.requests.map(({ role }) => role)).toEqual(['planner', 'planner'])
    expect(state.chat_history.at(-1)?.content).toBe(answer)
  })

  test('never shows half a character', async () => {
    const { answer } = await limited({ limits: { max_steps: 5 } }, () => `x${'😀'.repeat(400)}`)
    expect(answer?.isWellFormed()).toBe(true)
    expect(answer).toContain('x😀')
  })

  test('says so when nothing was found', async () => {
    expect((await limited({ limits: { max_steps: 4 } })).answer).toBe(
      'This is not a full answer: the limit of steps was reached. Nothing was found yet.',
    )
    const failing = (): string => {
      throw new Error('no')
    }
    expect((await limited({ limits: { max_steps: 8 } }, failing)).answer).toMatch(/Nothing was found yet/)
  })

  test.for([
    ['请查看 sales.csv 里的数据', '这不是完整的回答：已达到步骤数上限。目前还没有找到任何结果。'],
    [
      'What does 苹果 mean in English?',
      'This is not a full answer: the limit of steps was reached. Nothing was found yet.',
    ],
    [
      'Was bedeutet das?',
      'This is not a full answer: the limit of steps was reached. Nothing was found yet.',
    ],
    [
      '売上を教えてください',
      'This is not a full answer: the limit of steps was reached. Nothing was found yet.',
    ],
  ])('says so in the language of the request, Chinese or else English: %s', async ([prompt = '', text]) => {
    expect((await limited({ prompt, limits: { max_steps: 4 } })).answer).toBe(text)
  })

  test('of tokens gives the draft there is', async () => {
    const memory = memoryRun({ prompt: 'x', limits: { max_tokens: 10 } })
    await workOn(await graphWith(), memory, { models: modelsOf(() => ({ text: 'Forty-two.' })) })
    expect(memory.ended).toMatchObject({
      outcome: { status: 'completed', reason: 'tokens' },
      result: { answer: 'Forty-two.' },
    })
  })

  test('with a structure gives its pieces as far as they are', async () => {
    const { answer } = await limited({
      limits: { max_steps: 5 },
      output: { structure: [{ id: 'n', expected: 'n', type: 'number' }] },
    })
    expect(answer).toBe('{"n":null}')
  })

  test('by repetition says why', async () => {
    const memory = memoryRun({ prompt: 'x' })
    const models = modelsOf(() => ({ tool_calls: [{ name: 'look', arguments: {} }] }))
    await workOn(await graphWith([callTool('look', () => 'same')]), memory, { models })
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'no_progress' })
    expect(memory.ended?.result.answer).toMatch(/kept coming back.*- same/s)
  })
})
