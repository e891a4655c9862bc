import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { prepareAction } from '../../src/state/checkpoint.ts'
import { type ActionRow, applyAction, foldActions } from '../../src/state/fold.ts'
import type { Patch } from '../../src/state/patch.ts'
import {
  emptyState,
  type Json,
  type RuntimeState,
  runtimeStateSchema,
} from '../../src/state/runtime-state.ts'
import { body, todo } from '../support/actions.ts'

const small = fc.integer({ min: 0, max: 5 })
/** Any text, with NUL and halves of surrogate pairs. */
const text = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)), maxLength: 12 })
const json = fc.jsonValue({ maxDepth: 2, noUnicodeString: false } as never) as fc.Arbitrary<Json>
const data = fc.dictionary(text, json, { maxKeys: 3 })
const file = fc.record({
  name: small.map((n) => `f${n}`),
  type: text,
  local_path: text,
  mapping: fc.constant(null),
})

const patch: fc.Arbitrary<Patch> = fc.record(
  {
    prompts: text,
    user_context: data,
    memory: fc.array(
      fc.record({
        id: text,
        kind: fc.constantFrom('preference' as const, 'fact' as const),
        content: text,
        relevance: fc.double({ min: 0, max: 1, noNaN: true }),
        source_action_ids: fc.array(small),
        created_at: fc.constant('2025-01-01T00:00:00Z'),
      }),
      { maxLength: 2 },
    ),
    output_style: text,
    scenario: text,
    task_goals: text,
    origin_files: fc.array(file, { maxLength: 3 }),
    preprocessed_files: fc.record({ documents: data, tables: data }, { requiredKeys: [] }),
    todos: fc.array(
      small.map((n) => todo(`t${n}`, { retry: n })),
      { maxLength: 3 },
    ),
    chat_history: fc.array(
      fc.record({
        role: fc.constantFrom('user' as const, 'assistant' as const),
        content: text,
        turn: fc.constant(1),
      }),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
)

const draft = fc.record({
  node: fc.constantFrom('planner', 'reflection', 'look'),
  summary: text,
  result: fc.oneof(
    data,
    fc.record({
      judged: fc.array(
        fc.record({
          id: fc.integer({ min: 1, max: 8 }),
          relevance: fc.constant(0.9),
          important: fc.boolean(),
        }),
        { maxLength: 3 },
      ),
    }),
  ),
  usage: fc.record({ prompt_tokens: small, completion_tokens: small, total_tokens: small }),
  opensTurn: fc.boolean(),
  patch,
})

/** Rows as the database gives them back, beside the state a worker would hold after each. */
const asWorked = async (drafts: readonly (typeof draft extends fc.Arbitrary<infer One> ? One : never)[]) => {
  const rows: ActionRow[] = []
  let held: RuntimeState = emptyState
  let turn = 1
  for (const [at, { node, patch, opensTurn, ...more }] of drafts.entries()) {
    // a turn that was cancelled before it began leaves a gap
    if (opensTurn && at > 0) turn += at % 3 === 0 ? 2 : 1
    const prepared = await prepareAction(node, { ...more, next: [] }, patch, async () => 'hash')
    held = applyAction(held, { seq: at + 1, turn, body: prepared.body, patch: prepared.patch })
    rows.push({
      seq: at + 1,
      turn,
      body: JSON.parse(prepared.bodyText),
      patch: JSON.parse(prepared.patchText),
    })
  }
  return { rows, held }
}

describe('fold', () => {
  test('of the stored rows is the state that was held, also when taken up in the middle', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(draft, { maxLength: 12 }), fc.nat(), async (drafts, cut) => {
        const { rows, held } = await asWorked(drafts)
        expect(foldActions(rows)).toEqual(held)
        const at = cut % (rows.length + 1)
        expect(foldActions(rows.slice(at), foldActions(rows.slice(0, at)))).toEqual(held)
        expect(JSON.parse(JSON.stringify(held))).toEqual(held)
      }),
      { numRuns: 200 },
    )
  })

  test('gives a state that checks, whatever the patches', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(draft, { maxLength: 8 }), async (drafts) => {
        const { held } = await asWorked(drafts)
        expect(runtimeStateSchema.safeParse(held).error).toBeUndefined()
      }),
      { numRuns: 100 },
    )
  })

  test('does not change the state it starts from', async () => {
    const { rows } = await asWorked([])
    const before = foldActions(rows)
    const copy = structuredClone(before)
    applyAction(before, {
      seq: 1,
      turn: 1,
      body: body('planner'),
      patch: { prompts: 'p', todos: [todo('a')] },
    })
    expect(before).toEqual(copy)
  })

  test('shows what was judged on the actions that were judged, and leaves the rows as they are', () => {
    const rows: ActionRow[] = [
      { seq: 1, turn: 1, body: body('look'), patch: {} },
      {
        seq: 2,
        turn: 1,
        body: body('reflection', { result: { judged: [{ id: 1, relevance: 0.9, important: true }] } }),
        patch: {},
      },
    ]
    expect(foldActions(rows).action_history[0]?.[0]?.relevance).toBe(0.9)
    expect(rows[0]?.body.relevance).toBe(0.5)
  })
})

describe('prepareAction', () => {
  const prepare = (result: Record<string, Json>, blobs: Uint8Array[] = []) =>
    prepareAction('look', { summary: 's', result, next: [] }, {}, async (bytes) => {
      blobs.push(bytes)
      return 'hash'
    })

  test('a result over 32 KB becomes a reference with its start; what routing reads stays', async () => {
    const blobs: Uint8Array[] = []
    const large = 'ü'.repeat(50_000)
    const { body } = await prepare({ text: large, call: { index: 0, id: 'c' }, is_error: true }, blobs)
    expect(body.result).toEqual({
      blob: 'hash',
      bytes: blobs[0]?.length,
      head: large.slice(0, 2000),
      text_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      call: { index: 0, id: 'c' },
      is_error: true,
    })
    expect(JSON.parse(Buffer.from(blobs[0] ?? []).toString()).text).toBe(large)
  })

  test('a draft and an answer stay whole however long, since the answer of the run is made from them', async () => {
    const long = 'word '.repeat(20_000)
    expect((await prepare({ draft: long })).body.result.draft).toBe(long)
    expect((await prepare({ answer: long })).body.result.answer).toBe(long)
  })

  test('keeps NUL and halves of surrogate pairs, and drops what JSON has no word for', async () => {
    const { body, bodyText } = await prepare({ text: 'a\u0000b\ud800c', gone: undefined as never })
    expect(body.result).toEqual({ text: 'a\u0000b\ud800c' })
    expect(JSON.parse(bodyText)).toEqual(body)
  })

  test('stores of a patch what it holds of it, also where a name is `__proto__`', async () => {
    const user_context = JSON.parse('{"__proto__":{"role":"admin"},"name":"Ada"}')
    const { patch, patchText } = await prepareAction(
      'look',
      { summary: 's', next: [] },
      { user_context },
      async () => '',
    )
    expect(JSON.parse(patchText)).toEqual(patch)
    expect(Object.keys(patch.user_context ?? {})).toEqual(['name'])
  })

  test('refuses an invalid draft, naming the node and its file', async () => {
    await expect(
      prepareAction('look', { summary: 's', relevance: 2, next: [] }, {}, async () => ''),
    ).rejects.toMatchObject({
      code: 'node_failed',
      message: expect.stringMatching(/"look".*\n?.*relevance/s),
      remedy: expect.stringContaining('look'),
    })
  })
})
