import { z } from 'zod'
import { readWholeResult } from '../../context/result-text.ts'
import { readPlannedCalls } from '../../state/calls.ts'
import { MasonError } from '../../state/errors.ts'
import type { Blobs } from '../../state/ports/blobs.ts'
import { readActionLabel } from '../../state/provenance.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'

/** What the shopping tools leave in their results for later ones. The model reads the text alone. */

const text = z.string().min(1)
const price = z.object({ currency: z.string(), minor: z.number(), text: z.string() })
const offer = z.object({
  version: z.enum(['0.1', '0.2']),
  cart_id: text,
  label: z.string(),
  total: price,
  lines: z.array(z.object({ label: z.string(), price, refund_days: z.number().nullable().default(null) })),
  expires_at: z.string().nullable(),
  refund_days: z.number().nullable(),
  merchant: z.string().nullable(),
})
const sale = { agent: text, context_id: text.nullable(), risk_data: text }

/** What a user wants to buy, as merchants get it. */
const intent = z.object({
  user_cart_confirmation_required: z.literal(true),
  natural_language_description: text,
  merchants: z.array(z.string()),
  skus: z.array(z.string()),
  requires_refundability: z.boolean(),
  intent_expiry: text,
})

/** The results of the tools, by their names. */
const shoppingResults = {
  create_intent_mandate: z.object({ confirmed: z.boolean(), intent }),
  find_products: z.object({ ...sale, offers: z.array(offer).min(1) }),
  choose_cart: z.object({ ...sale, offer, mandate_id: text.optional() }),
  get_shipping_address: z.object({
    address: z.record(z.string(), z.json()),
    user_email: text.nullable(),
    credentials_agent: text.nullable(),
  }),
  update_cart: z.object({
    ...sale,
    version: z.enum(['0.1', '0.2']),
    signed_id: text,
    methods: z.array(z.json()),
  }),
  get_payment_methods: z.object({
    version: z.enum(['0.1', '0.2']),
    cart_id: text,
    credentials_agent: text,
    alias: text,
    context_id: text.nullable(),
    user_email: text,
  }),
} as const

/** Tools whose results count as those of another: of open mandates, the user has chosen before. */
const standIns: Record<string, keyof typeof shoppingResults> = { find_item: 'choose_cart' }

type Results = typeof shoppingResults
/** What a user wants to buy. */
export type Intent = z.output<typeof intent>
/** What a merchant offers, as it is in results: never by what it could be paid. */
export type ShownOffer = z.output<typeof offer>

/** Whether a merchant, where it is known, is none of those that the user wants. */
export const isUnwanted = (merchant: string | null, { merchants }: Intent): boolean =>
  merchant !== null &&
  merchants.length > 0 &&
  !merchants.some((name) => name.toLowerCase() === merchant.toLowerCase())

/** The shortest return period of the total and the lines; null: the offer names none. */
export const findRefundDays = ({ refund_days, lines }: ShownOffer): number | null =>
  refund_days && Math.min(refund_days, ...lines.map((line) => line.refund_days ?? refund_days))

type History = Pick<RuntimeState, 'action_history'>

/** The latest result of a tool, and the id of its action; null: there is none. Its own errors do not count. */
export const findLatest = async <Tool extends keyof Results>(
  { action_history }: History,
  tool: Tool,
  blobs: Pick<Blobs, 'read'>,
): Promise<(z.output<Results[Tool]> & { id: number }) | null> => {
  for (const action of action_history.flat().reverse()) {
    if (
      (standIns[action.node] ?? action.node) !== tool ||
      action.result.is_error === true ||
      readPlannedCalls(action).length > 0
    )
      continue
    const { data } = shoppingResults[tool].safeParse(await readWholeResult(action, blobs))
    if (data) return { ...(data as z.output<Results[Tool]>), id: action.id }
  }
  return null
}

/** The same where there must be one: throws `invalid_request` with what to do first. */
export const getLatest = async <Tool extends keyof Results>(
  state: History,
  tool: Tool,
  blobs: Pick<Blobs, 'read'>,
  missing: string,
): Promise<z.output<Results[Tool]> & { id: number }> => {
  const found = await findLatest(state, tool, blobs)
  if (found) return found
  throw new MasonError('invalid_request', missing, { remedy: `call ${tool} first` })
}

/** The final cart, with the email address of its shipping address. Throws where the user has chosen another cart or address since. */
export const getSale = async (state: History, blobs: Pick<Blobs, 'read'>) => {
  const sale = await getLatest(state, 'update_cart', blobs, 'there is no final cart')
  const choice = await findLatest(state, 'choose_cart', blobs)
  const account = await findLatest(state, 'get_shipping_address', blobs)
  if (Math.max(choice?.id ?? 0, account?.id ?? 0) <= sale.id) return { sale, account }
  throw new MasonError('invalid_request', 'the user has chosen another cart or address since', {
    remedy: 'call update_cart first',
  })
}

/** Throws unless the user wrote this themselves: words of agents and pages choose no account. */
export const checkSaidByUser = (
  { prompts, action_history }: Pick<RuntimeState, 'prompts' | 'action_history'>,
  words: string,
  what: string,
): void => {
  const answers = action_history
    .flat()
    .filter((action) => readActionLabel(action).trusted)
    .map(({ result }) => String(result.text ?? ''))
  if ([...prompts, ...answers].some((said) => said.toLowerCase().includes(words.toLowerCase()))) return
  throw new MasonError('invalid_request', `the user has not said this ${what}`, {
    remedy: `ask the user for their ${what} with ask_user, with answer_type text`,
  })
}
