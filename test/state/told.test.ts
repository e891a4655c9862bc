import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Piece } from '../../src/state/context/earlier.ts'
import { tellTurns } from '../../src/state/context/told.ts'
import { estimateTokens } from '../../src/state/tokens.ts'

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
      pieces.map(({ kind, tokens, important, relevance }): Piece => {
        const rank = { important, relevance, recency: ++id }
        const line = `action ${id} (turn ${at + 1}): look {}`
        return {
          turn: at + 1,
          id,
          kind,
          line,
          text: '',
          label: { origin: 'tool', trusted: false },
          rank,
          tokens,
        }
      }),
    )
  })

const sizeOf = (told: ReturnType<typeof tellTurns>): number =>
  [...told].reduce(
    (sum, [one, how]) => sum + (how === 'whole' ? one.tokens : estimateTokens(one.line) + 2),
    0,
  )

test('what is told fits its room, and only ever grows by a turn or makes room for several', () => {
  fc.assert(
    fc.property(session, fc.integer({ min: 500, max: 8000 }), (turns, room) => {
      let before = tellTurns([], room)
      for (let n = 1; n <= turns.length; n++) {
        const told = tellTurns(turns.slice(0, n), room)
        expect(sizeOf(told)).toBeLessThanOrEqual(room)
        const added = turns[n - 1] ?? []
        const grown = new Map([...before, ...added.map((one) => [one, 'whole'] as const)])
        if (sizeOf(grown) <= room) expect(told).toEqual(grown)
        else expect(sizeOf(told)).toBeLessThanOrEqual(room * 0.6 + 1)
        // what was left out once does not come back
        for (const [one, how] of told)
          if (!added.includes(one)) expect([how, 'whole']).toContain(before.get(one))
        before = told
      }
    }),
    { numRuns: 60 },
  )
})

test('the important, relevant and latest stay, and what the last two turns said', () => {
  const one = (turn: number, kind: Piece['kind'], relevance: number): Piece => ({
    turn,
    id: turn,
    kind,
    line: `action ${turn}`,
    text: '',
    label: { origin: 'tool', trusted: false },
    rank: { important: false, relevance, recency: turn },
    tokens: 100,
  })
  const turns = Array.from({ length: 9 }, (_, at) => [
    one(at + 1, 'chat', 0.5),
    one(at + 1, 'action', at === 1 ? 0.9 : 0.2),
  ])
  const told = [...tellTurns(turns, 1700)]
    .filter(([, how]) => how === 'whole')
    .map(([{ kind, turn }]) => kind + turn)
  expect(told).toContain('action2')
  expect(told).toContain('chat8')
  expect(told).toContain('chat9')
  expect(told).not.toContain('action1')
})
