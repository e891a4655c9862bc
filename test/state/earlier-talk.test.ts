import { expect, test } from 'vitest'
import { type EarlierTalk, episodeFor } from '../../src/state/memory/earlier-talk.ts'

const talk = (session_id: string, summary: string): EarlierTalk => ({
  session_id,
  summary,
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
  expect(episodeFor(request, talks)?.id ?? null).toBe(session && `session ${session}`)
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

test('there is none without talks', () => {
  expect(episodeFor('last time', [])).toBeNull()
})
