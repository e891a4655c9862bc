import { describe, expect, test } from 'vitest'
import {
  type ForgottenContent,
  findLeakingSessions,
} from '../../../../src/features/user-memory/policy/summary-leaks.ts'

const nothing: ForgottenContent = { memories: [], profileValues: [], teachingSessions: [] }
const lyon = { id: 'mem_1', content: 'The user lives in Lyon.' }
const talk = (session_id: string, summary: string, ...recalledIds: string[]) => ({
  session_id,
  summary,
  recalledIds,
})

describe('a summary repeats forgotten content', () => {
  test('where its session taught it, or was shown it and says a word of it', () => {
    const talks = [
      talk('taught', 'Clara plans a dinner.'),
      talk('shown', '1. A park near me? -> There is one in Lyon.', 'mem_1'),
      talk('shown and silent', '1. What is 2 + 2? -> 4.', 'mem_1'),
      talk('not shown', '1. Where does the train to Lyon leave? -> Platform 3.', 'mem_2'),
    ]
    expect(
      findLeakingSessions(talks, { ...nothing, memories: [lyon], teachingSessions: ['taught'] }),
    ).toEqual(['taught', 'shown'])
  })

  test('where it was shown a session that contains it, over any number of sessions', () => {
    const talks = [
      talk('c', '3. And the weather there? -> Rain in Lyon.', 'session b 4'),
      talk('b', '2. Where was that? -> Lyon.', 'session a 1'),
      talk('a', '1. A park near me? -> One in Lyon.', 'mem_1'),
      talk('d', '2. How many guests? -> Six.', 'session a 1'),
      talk('e', '2. Which train? -> The one to Lyon.', 'session d 2'),
    ]
    expect(findLeakingSessions(talks, { ...nothing, memories: [lyon] })).toEqual(['c', 'b', 'a'])
  })

  test('where it was shown the session that is deleted', () => {
    const gone = { session_id: 'gone', summary: '1. Plan the dinner -> Lentils for Clara.' }
    const talks = [
      talk('later', '1. Where were we? -> At the lentils.', 'session gone 7'),
      talk('apart', '1. Count to ten -> Done.', 'session gone 7'),
      talk('another of a like name', '1. Lentils?', 'session gone2 7'),
    ]
    expect(findLeakingSessions(talks, { ...nothing, deletedSession: gone })).toEqual(['later'])
  })

  test('where it contains a value of the profile, which every session was shown', () => {
    const talks = [
      talk('greets', '1. Hello -> Hello Clara Jensen!'),
      talk('half', '1. Who is Jensen? -> A name.'),
      talk('asks', '1. What will he do? -> Nothing.', 'session greets 1'),
    ]
    expect(findLeakingSessions(talks, { ...nothing, profileValues: ['Clara Jensen'] })).toEqual(['greets'])
    expect(findLeakingSessions(talks, { ...nothing, profileValues: ['Will'] })).toEqual(['asks'])
  })
})
