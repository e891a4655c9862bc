import { readWholeResult } from '../../../context/result-text.ts'
import { parseJsonOrText } from '../../../infra/lib/json-text.ts'
import type { Blobs } from '../../../state/ports/blobs.ts'
import type { ReadonlyAction } from '../../../state/turn.ts'
import type { SignedCart } from '../ports/run-payments.ref.ts'
import { toJsonText } from '../runs/reply-parts.ts'

type JsonObject = Record<string, unknown>
const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null

/** The JSON of a text, also with words before and after it, as in the response of a page. */
const readJson = (text: string): unknown => {
  const whole = parseJsonOrText(text)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']')) + 1
  return whole === text ? parseJsonOrText(text.slice(text.search(/[[{]/), end)) : whole
}

/** As long as a `cart_id` may be: the id goes from step to step, and stands in messages. */
export const maxCartIdChars = 500
const isId = (value: unknown): value is string => typeof value === 'string' && value.length <= maxCartIdChars

/** A cart of AP2 0.1, by the members that only it has. */
const readCart = (value: JsonObject): SignedCart | null => {
  const { contents } = value
  const signature = value.merchant_authorization ?? value.merchantAuthorization ?? value.merchant_signature
  if (!isObject(contents) || !isId(contents.id) || typeof signature !== 'string') return null
  const text = toJsonText(value)
  return text === '' ? null : { version: '0.1', id: contents.id, text }
}

/** A checkout of AP2 0.2: a JWT whose payload has lines. */
const readCheckout = (token: string): SignedCart | null => {
  const parts = token.split('.')
  const payload =
    parts.length === 3 ? parseJsonOrText(Buffer.from(parts[1] ?? '', 'base64url').toString()) : null
  if (!isObject(payload) || !isId(payload.id) || !Array.isArray(payload.line_items)) return null
  return { version: '0.2', id: payload.id, text: token }
}

const maxDepth = 50

const collect = (value: unknown, found: Map<string, SignedCart>, depth = 0): void => {
  if (!isObject(value) || depth > maxDepth) return
  const cart = Array.isArray(value) ? null : readCart(value)
  if (cart) found.set(cart.text, cart)
  else for (const member of Object.values(value)) collect(member, found, depth + 1)
}

/** The signed carts in the result of an action, in their order; none where its bytes are gone. Nothing about them is verified here. */
export const findSignedCarts = async (
  action: ReadonlyAction,
  blobs: Pick<Blobs, 'read'>,
): Promise<SignedCart[]> => {
  const { call: _call, provenance: _provenance, ...fields } = (await readWholeResult(action, blobs)) ?? {}
  const found = new Map<string, SignedCart>()
  for (const field of Object.values(fields)) {
    const text = typeof field === 'string' ? field : toJsonText(field)
    collect(typeof field === 'string' ? readJson(text) : field, found)
    for (const token of text.split(/[^\w.-]+/)) {
      const checkout = readCheckout(token)
      if (checkout) found.set(token, checkout)
    }
  }
  return [...found.values()]
}
