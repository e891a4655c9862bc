import { expect, test } from 'vitest'
import { backgroundWithin } from '../../src/state/context/background.ts'
import { type EarlierTalk, episodeFor } from '../../src/state/memory/earlier-talk.ts'
import { body, stateOf } from '../support/actions.ts'

const talk = (session_id: string, summary: string): EarlierTalk => ({
  session_id,
  summary,
  summary_turn: 3,
  updated_at: new Date('2026-11-20T08:00:00Z'),
})
const talks = [
  talk('s2', 'The user planned a dinner for four without meat.'),
  talk('s1', 'The warehouse in Leeds counts its pallets anew; the figures of May were wrong.'),
]

test.each([
  ['Where did we leave it last time?', 's2'],
  ['我们上次说到哪里了？', 's2'],
  ['Were the figures of the Leeds warehouse wrong?', 's1'],
  ['What is the weather like?', null],
  ['dinner', null],
  ['', null],
])('"%s" goes back to %s', (request, session) => {
  expect(episodeFor(request, talks)?.id ?? null).toBe(session && `session ${session} 3`)
})

test('what was said is shown on one line, by its end, and is not to be trusted', () => {
  const long = Array.from(
    { length: 40 },
    (_, at) => `${at + 1}. ${'ask '.repeat(10)}-> answer ${at + 1}`,
  ).join('\n')
  const episode = episodeFor('continue where we left off', [talk('s', long)])
  expect(episode).toMatchObject({ kind: 'episode', trusted: false, origin: 'agent', source_action_ids: [] })
  expect(episode?.content).toMatch(/^Earlier talk, until 2026-11-20: ….* \/ 40\. .*-> answer 40$/)
  expect(episode?.content.length).toBeLessThan(1100)
})

test('a prompt shows a talk as it was recalled last, beside other talks', () => {
  const recalled = (id: string, content: string, relevance: number) => ({
    ...{ id, content, relevance, kind: 'episode' as const, source_action_ids: [], created_at: '' },
  })
  const memory = [
    recalled('session s1', 'at four', 0.9),
    recalled('session s1 2', 'at five', 0.8),
    recalled('session s2 2', 'at noon', 0.8),
    recalled('session s1 4', 'at six', 0.6),
  ]
  const shown = backgroundWithin({ ...stateOf([body('load-session')], 'When?'), memory }, 4000)
  expect(shown.match(/- at \w+/g)).toEqual(['- at noon', '- at six'])
})

test('there is none without talks', () => {
  expect(episodeFor('last time', [])).toBeNull()
})
