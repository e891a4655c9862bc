import { describe, expect, test } from 'vitest'
import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import type { ModelRequest, ModelRole } from '../../src/state/ports/models.ts'
import { estimateTokens } from '../../src/state/text/tokens.ts'
import { requestsOf, type Session } from './golden/runs.ts'
import { laterTurn, longTurn, tableFile } from './golden/sessions.ts'

/**
 * The requests that models get, as text for reviewers: a change of a prompt shows as a change of these files. After a
 * wanted change: `npx vitest run --project unit test/context/golden-prompts.test.ts -u`, and read the difference.
 */

const sessions = { 'table-file': tableFile, 'long-turn': longTurn, 'later-turn': laterTurn }
const runs = new Map<Session, Promise<ModelRequest[]>>()
const played = (session: Session): Promise<ModelRequest[]> => {
  const run = runs.get(session) ?? requestsOf(session)
  runs.set(session, run)
  return run
}

/** The `nth` request of a role in the last turn of a session. */
const requestOf = async (session: Session, role: ModelRole, nth = 1): Promise<ModelRequest> => {
  const request = (await played(session)).filter((one) => one.role === role)[nth - 1]
  if (!request) throw new Error(`there is no request ${nth} of ${role}`)
  return request
}

const renderMessage = (message: ModelMessage): string => {
  const calls = 'tool_calls' in message ? (message.tool_calls ?? []) : []
  const name = message.role === 'tool' ? `tool ${message.tool_call_id}` : message.role
  const lines = [
    `=== ${name}`,
    message.content,
    ...calls.map((call) => `-> ${call.name} ${call.arguments} (${call.id})`),
  ]
  return lines.filter((line) => line !== '').join('\n')
}
const renderMessages = ({ messages, schema }: ModelRequest): string =>
  `${[...messages.map(renderMessage), ...(schema ? [`=== schema\n${JSON.stringify(schema, null, 1)}`] : [])].join('\n\n')}\n`
const renderTools = ({ tools = [] }: ModelRequest): string =>
  tools
    .map(
      ({ name, description, parameters }) =>
        `=== ${name}\n${description}\n${JSON.stringify(parameters, null, 1)}\n`,
    )
    .join('\n')

const golden: [role: ModelRole, state: string, Session, nth: number][] = [
  ['planner', 'table-file', tableFile, 1],
  ['planner', 'long-turn', longTurn, 5],
  ['reflection', 'long-turn', longTurn, 1],
  ['output', 'table-file', tableFile, 1],
]

describe('the prompt that a reviewer has read is the one that is sent', () => {
  test.each(golden)('%s: %s', async (role, state, session, nth) => {
    const text = renderMessages(await requestOf(session, role, nth))
    await expect(text).toMatchFileSnapshot(`golden/${role}.${state}.txt`)
  })

  test('planner: the tools, the same in every state', async () => {
    const [first, ...others] = await Promise.all(
      Object.values(sessions).map(async (session) => renderTools(await requestOf(session, 'planner'))),
    )
    await expect(first).toMatchFileSnapshot('golden/planner.tools.txt')
    for (const other of others) expect(other).toBe(first)
  })
})

const countTokens = ({ messages, tools }: ModelRequest): number =>
  estimateTokens(JSON.stringify({ messages, tools }))
const median = (requests: readonly ModelRequest[]): number =>
  requests.map(countTokens).toSorted((a, b) => a - b)[Math.floor(requests.length / 2)] ?? 0

/** The fields of goal, style and structure. */
const maxForm = 100
/** Of one request of the planner in each session, and of all that it got in these sessions' last turns, before issue 12. */
const before = { golden: 2047, all: 2258 }

test('the requests of the planner take at most 115 % of what they took before they said more', async () => {
  const shown = await Promise.all(
    [tableFile, longTurn, laterTurn].map((session) =>
      requestOf(session, 'planner', session === longTurn ? 5 : 1),
    ),
  )
  const all = (await Promise.all(Object.values(sessions).map(played))).flat()
  expect(median(shown)).toBeLessThanOrEqual(before.golden * 1.15 + maxForm)
  expect(median(all.filter(({ role }) => role === 'planner'))).toBeLessThanOrEqual(
    before.all * 1.15 + maxForm,
  )
})
