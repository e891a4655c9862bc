import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  openSealedText,
  rewrapKey,
  type SealBinding,
  type SealedText,
  sealText,
} from '../../../src/infra/secrets/envelope.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { isMasonError } from '../../../src/state/errors.ts'

const newKey = (): string => randomBytes(32).toString('base64')
const first = newKey()
const second = newKey()
const keys = createMasterKeys(first)
const place: SealBinding = { purpose: 'secret', vendor_id: 'ven_1', row_id: 'key_1' }

/** The code and the text of what `work` throws. */
const failureOf = (work: () => unknown): { code: string; text: string } => {
  try {
    work()
  } catch (error) {
    if (!isMasonError(error)) throw error
    return { code: error.code, text: `${error.message} ${error.remedy} ${JSON.stringify(error.detail)}` }
  }
  return { code: 'none', text: '' }
}

const placeOf = fc.record({
  purpose: fc.constantFrom('secret', 'headers') as fc.Arbitrary<SealBinding['purpose']>,
  vendor_id: fc.string(),
  row_id: fc.string(),
  business_id: fc.string(),
})

describe('a sealed text', () => {
  test('opens unchanged in its own row', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), placeOf, (text, where) => {
        const row = sealText(text, where, keys)
        expect(openSealedText(row, where, keys).reveal()).toBe(text)
        expect(Buffer.from(row.sealed).includes(text) && text.length > 3).toBe(false)
      }),
    )
  })

  test('opens in no other row', () => {
    fc.assert(
      fc.property(placeOf, placeOf, (here, there) => {
        fc.pre(JSON.stringify(here) !== JSON.stringify(there))
        const row = sealText('a secret', here, keys)
        expect(failureOf(() => openSealedText(row, there, keys)).code).toBe('secret_unreadable')
        expect(failureOf(() => rewrapKey(row, there, keys)).code).toBe('secret_unreadable')
      }),
    )
  })

  test('is refused with any bit flipped, cut anywhere, or longer', () => {
    const row = sealText('sk-canary-0123456789', place, keys)
    for (const column of ['wrapped_key', 'sealed'] as const) {
      const bytes = Buffer.from(row[column])
      const changed = [
        ...Array.from({ length: bytes.length * 8 }, (_, bit) => {
          const copy = Buffer.from(bytes)
          copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
          return copy
        }),
        ...Array.from(bytes, (_, length) => bytes.subarray(0, length)),
        Buffer.concat([bytes, Buffer.of(0)]),
      ]
      for (const value of changed) {
        const failure = failureOf(() => openSealedText({ ...row, [column]: value }, place, keys))
        expect(failure.code).toBe('secret_unreadable')
        expect(failure.text).toContain('/admin/v1/vendors/ven_1/keys/key_1/rotate')
        expect(failure.text).not.toContain('canary')
      }
    }
  })

  test('is refused with the data key, the text or the master key of another', () => {
    const two = createMasterKeys(second, [first])
    const [a, b, c] = [
      sealText('one', place, keys),
      sealText('two', place, keys),
      sealText('one', place, two),
    ]
    const mixed: SealedText[] = [
      { ...a, wrapped_key: b.wrapped_key },
      { ...a, sealed: b.sealed },
      { ...a, master_key: c.master_key },
      { ...a, wrapped_key: a.sealed, sealed: a.wrapped_key },
    ]
    for (const row of mixed)
      expect(failureOf(() => openSealedText(row, place, two)).code).toBe('secret_unreadable')
  })

  test('shows nothing when it is sealed twice', () => {
    const [a, b] = [sealText('same', place, keys), sealText('same', place, keys)]
    expect(a.sealed).not.toEqual(b.sealed)
    expect(a.wrapped_key).not.toEqual(b.wrapped_key)
  })

  test('under a missing master key names the key and the remedy', () => {
    const row = sealText('x', place, keys)
    const failure = failureOf(() => openSealedText(row, place, createMasterKeys(second)))
    expect(failure.code).toBe('secret_unreadable')
    expect(failure.text).toContain(row.master_key)
    expect(failure.text).toContain('MASON_PREVIOUS_MASTER_KEYS')
    expect(failureOf(() => sealText('x', place, createMasterKeys(null))).text).toContain('MASON_MASTER_KEY')
  })

  test('is rewrapped under the current master key, what it seals unchanged', () => {
    const row = sealText('carried over', place, keys)
    const both = createMasterKeys(second, [first])
    const moved = { ...row, ...rewrapKey(row, place, both) }
    expect(moved.master_key).toBe(both.current().name)
    expect(openSealedText(moved, place, createMasterKeys(second)).reveal()).toBe('carried over')
    expect(failureOf(() => openSealedText(moved, place, keys)).code).toBe('secret_unreadable')
  })
})

test('master keys show their names and nothing of themselves', () => {
  const both = createMasterKeys(first, [second])
  expect(both.current().name).toMatch(/^[0-9a-f]{16}$/)
  const shown = [
    inspect(both.current(), { depth: 9, showHidden: true }),
    JSON.stringify(both.current()),
  ].join()
  for (const key of [first, second]) {
    expect(shown).not.toContain(key)
    expect(shown).not.toContain(Buffer.from(key, 'base64').toString('hex'))
  }
})
