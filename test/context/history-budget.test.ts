import fc from 'fast-check'
import { expect, test } from 'vitest'
import { selectHistory } from '../../src/context/history-budget.ts'
import type { HistoryEntry } from '../../src/context/history-entries.ts'
import { ownText } from '../../src/state/provenance.ts'
import { estimateTokens } from '../../src/state/text/tokens.ts'

const piece = fc.record({
  kind: fc.constantFrom('chat' as const, 'action' as const),
  tokens: fc.integer({ min: 20, max: 900 }),
  important: fc.boolean(),
  relevance: fc.double({ min: 0, max: 1, noNaN: true }),
})
const session = fc
  .array(fc.array(piece, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 25 })
  .map((turns) => {
    let id = 0
    return turns.map((pieces, at) =>
      pieces.map(({ kind, tokens, important, relevance }): HistoryEntry => {
        const rank = { important, relevance, recency: ++id }
        const heading = `action ${id} (turn ${at + 1}): look {}`
        return {
          turn: at + 1,
          id,
          kind,
          title: ownText`action`,
          heading,
          text: '',
          label: { origin: 'tool', trusted: false },
          rank,
          tokens,
        }
      }),
    )
  })

const sizeOf = (history: ReturnType<typeof selectHistory>): number =>
  [...history].reduce(
    (sum, [one, how]) => sum + (how === 'whole' ? one.tokens : estimateTokens(one.title + one.heading) + 12),
    0,
  )

test('the history fits its budget, and either grows by a turn or drops several turns at once', () => {
  fc.assert(
    fc.property(session, fc.integer({ min: 500, max: 8000 }), (turns, room) => {
      let before = selectHistory([], room)
      for (let n = 1; n <= turns.length; n++) {
        const history = selectHistory(turns.slice(0, n), room)
        expect(sizeOf(history)).toBeLessThanOrEqual(room)
        const added = turns[n - 1] ?? []
        const grown = new Map([...before, ...added.map((one) => [one, 'whole'] as const)])
        if (sizeOf(grown) <= room) expect(history).toEqual(grown)
        else expect(sizeOf(history)).toBeLessThanOrEqual(room * 0.6 + 1)
        // what was left out once does not come back
        for (const [one, how] of history)
          if (!added.includes(one)) expect([how, 'whole']).toContain(before.get(one))
        before = history
      }
    }),
    { numRuns: 60 },
  )
})

test('the history keeps important, relevant and latest actions, and the answers of the last two turns', () => {
  const one = (turn: number, kind: HistoryEntry['kind'], relevance: number): HistoryEntry => ({
    turn,
    id: turn,
    kind,
    title: ownText`action`,
    heading: `action ${turn}`,
    text: '',
    label: { origin: 'tool', trusted: false },
    rank: { important: false, relevance, recency: turn },
    tokens: 100,
  })
  const turns = Array.from({ length: 9 }, (_, at) => [
    one(at + 1, 'chat', 0.5),
    one(at + 1, 'action', at === 1 ? 0.9 : 0.2),
  ])
  const history = [...selectHistory(turns, 1700)]
    .filter(([, how]) => how === 'whole')
    .map(([{ kind, turn }]) => kind + turn)
  expect(history).toContain('action2')
  expect(history).toContain('chat8')
  expect(history).toContain('chat9')
  expect(history).not.toContain('action1')
})
