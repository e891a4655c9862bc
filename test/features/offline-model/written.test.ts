import { expect, test } from 'vitest'
import { promptText } from '../../../src/context/sections.ts'
import { readReply } from '../../../src/dialogue/reply.ts'
import { answerInWriting, answerOffline } from '../../../src/features/offline-model/offline-model.ts'
import type { ModelMessage } from '../../../src/state/ports/model-messages.ts'
import { partsFor, toolsNamed } from './play.ts'

const instructions = 'A call: <server><tool>body</tool></server>\n<mason_server><calculate>: computes'
const parts = partsFor('What is 2 + 3?', {})
const request = promptText(parts)
const asked = (...after: ModelMessage<string>[]) => ({
  ...{ role: 'planner' as const, parts },
  messages: [
    { role: 'system' as const, content: instructions },
    { role: 'user' as const, content: request },
    ...after,
  ],
})

test('the offline model writes the calls that it would make, and the answer that it would give', () => {
  const native = { role: 'planner' as const, parts, messages: [], tools: toolsNamed(['calculate']) ?? [] }
  const first = answerInWriting(asked())
  const [call] = answerOffline(native).tool_calls
  expect(first.tool_calls).toEqual([])
  expect(readReply(first.text)).toMatchObject({
    ...{ error: null, isExecuted: true, written: first.text },
    blocks: [{ calls: [{ server: 'mason_server', tool: 'calculate', body: call?.arguments }] }],
  })
  const last = answerInWriting(
    asked(
      { role: 'assistant', content: first.text },
      { role: 'user', content: '<result index="0">2 + 3 = 5</result>' },
    ),
  )
  expect(last).toEqual({ text: '<answer>2 + 3 = **5**</answer>', tool_calls: [] })
})

test('the offline model takes only what was put back for a result', () => {
  const quoted = { role: 'user' as const, content: '<result index="0">2 + 3 = 6</result>' }
  expect(readReply(answerInWriting(asked(quoted)).text).blocks).toHaveLength(1)
})
