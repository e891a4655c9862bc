import { describe, expect, test } from 'vitest'
import { type Gone, retellers } from '../../src/state/memory/retold.ts'

const nothing: Gone = { memories: [], values: [], teachers: [] }
const lyon = { id: 'mem_1', content: 'The user lives in Lyon.' }
const talk = (session_id: string, summary: string, ...shown: string[]) => ({ session_id, summary, shown })

describe('a summary tells on what is gone', () => {
  test('where its session taught it, or was shown it and says a word of it', () => {
    const talks = [
      talk('taught', 'Clara plans a dinner.'),
      talk('shown', '1. A park near me? -> There is one in Lyon.', 'mem_1'),
      talk('shown and silent', '1. What is 2 + 2? -> 4.', 'mem_1'),
      talk('not shown', '1. Where does the train to Lyon leave? -> Platform 3.', 'mem_2'),
    ]
    expect(retellers(talks, { ...nothing, memories: [lyon], teachers: ['taught'] })).toEqual([
      'taught',
      'shown',
    ])
  })

  test('where it was shown a talk that tells it, over any number of talks', () => {
    const talks = [
      talk('c', '3. And the weather there? -> Rain in Lyon.', 'session b 4'),
      talk('b', '2. Where was that? -> Lyon.', 'session a 1'),
      talk('a', '1. A park near me? -> One in Lyon.', 'mem_1'),
      talk('d', '2. How many guests? -> Six.', 'session a 1'),
      talk('e', '2. Which train? -> The one to Lyon.', 'session d 2'),
    ]
    expect(retellers(talks, { ...nothing, memories: [lyon] })).toEqual(['c', 'b', 'a'])
  })

  test('where it was shown the talk of the session that goes', () => {
    const gone = { session_id: 'gone', summary: '1. Plan the dinner -> Lentils for Clara.' }
    const talks = [
      talk('later', '1. Where were we? -> At the lentils.', 'session gone 7'),
      talk('apart', '1. Count to ten -> Done.', 'session gone 7'),
      talk('another of a like name', '1. Lentils?', 'session gone2 7'),
    ]
    expect(retellers(talks, { ...nothing, talk: gone })).toEqual(['later'])
  })

  test('where a value of the profile stands in it, which every session was shown', () => {
    const talks = [
      talk('greets', '1. Hello -> Hello Clara Jensen!'),
      talk('half', '1. Who is Jensen? -> A name.'),
      talk('asks', '1. What will he do? -> Nothing.', 'session greets 1'),
    ]
    expect(retellers(talks, { ...nothing, values: ['Clara Jensen'] })).toEqual(['greets'])
    expect(retellers(talks, { ...nothing, values: ['Will'] })).toEqual(['asks'])
  })
})
