import { describe, expect, test } from 'vitest'
import { findSignedCarts } from '../../../../src/features/payments/tools/find-signed-carts.ts'
import { answer, stateOf } from '../../../support/actions.ts'

/** The carts in the result of a tool with this text. */
const find = (text: string) => {
  const [[action] = []] = stateOf([answer('gate_offer', 0, { text })], 'Buy it').action_history
  if (!action) throw new Error('the state has no action')
  return findSignedCarts(action, { read: async () => null })
}
const cart = (contents: object): string => JSON.stringify({ contents, merchant_authorization: 'a.b.c' })
const checkout = (payload: object): string =>
  ['e30', Buffer.from(JSON.stringify(payload)).toString('base64url'), 'AA'].join('.')

describe('findSignedCarts', () => {
  test('finds carts and checkouts, also inside other JSON and between words', async () => {
    const text = `HTTP 200\n\n{"offers":[${cart({ id: 'one' })},${cart({ id: 'two' })}]}\n\nor ${checkout({ id: 'three', line_items: [] })}`
    const carts = await find(text)
    expect(carts?.map(({ id, version }) => [id, version])).toEqual([
      ['one', '0.1'],
      ['two', '0.1'],
      ['three', '0.2'],
    ])
  })

  test.each([
    ['an object that is no text', cart({ id: { toString: 1, valueOf: 1 } })],
    ['nothing', cart({})],
    ['more than 500 characters', cart({ id: 'x'.repeat(501) })],
    ['an object, in a checkout', checkout({ id: { toString: 1, valueOf: 1 }, line_items: [] })],
    ['more than 500 characters, in a checkout', checkout({ id: 'x'.repeat(501), line_items: [] })],
  ])('takes an offer whose id is %s for none', async (_, text) => {
    expect(await find(text)).toEqual([])
  })

  test('takes contents that are nested without end for none', async () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const text = `{"contents":{"id":"one","deep":${deep}},"merchant_authorization":"a.b.c"}`
    expect(await find(text)).toEqual([])
  })
})
