import type { OpenMandateLimits } from '../../ports/run-mandates.ref.ts'
import { omitNulls, readJson, writeJson } from '../json.ts'
import { parseChain, readContent } from '../tokens/chain.ts'
import { hashText, isObject, type JsonObject } from '../tokens/encoding.ts'
import { appendMandate, conceal, issueMandate } from '../tokens/issue.ts'
import type { SigningKey } from '../tokens/keys.ts'
import { discloseClaims } from '../tokens/sd-jwt.ts'
import { buildBudget } from './build.ts'
import { checkoutConstraintSchemas, paymentConstraintSchemas } from './types.ts'

/** An open checkout and an open payment mandate: as JSON texts before they are signed, as chains of one hop afterwards. */
export type OpenMandatePair = { checkout: string; payment: string }

const write = (value: JsonObject): string => writeJson(omitNulls(value))

/** The mandates of limits, as JSON texts without what signing adds: the agent's key, the time, and how they are linked. */
export const createOpenMandates = (limits: OpenMandateLimits): OpenMandatePair => {
  const {
    merchants,
    items,
    currency,
    max_minor,
    budget_minor,
    recurrence,
    instrument,
    expires_at: exp,
  } = limits
  const lines = items.map(({ any_of, quantity }, i) => ({
    id: `line_${i + 1}`,
    acceptable_items: any_of,
    quantity,
  }))
  const budget = budget_minor === null ? [] : [buildBudget({ currency, minor: budget_minor })]
  return {
    checkout: write({
      vct: 'mandate.checkout.open.1',
      constraints: [
        { type: 'checkout.allowed_merchants', allowed: merchants },
        { type: 'checkout.line_items', items: lines },
      ],
      exp,
    }),
    payment: write({
      vct: 'mandate.payment.open.1',
      constraints: [
        { type: 'payment.amount_range', currency, max: max_minor, min: 0 },
        { type: 'payment.allowed_payees', allowed: merchants },
        { type: 'payment.allowed_payment_instruments', allowed: [instrument] },
        ...budget,
        ...(recurrence === null ? [] : [{ type: 'payment.agent_recurrence', ...recurrence }]),
      ],
      exp,
    }),
  }
}

const readConstraints = (text: string): ((type: string) => unknown) => {
  const open = readJson(text)
  const listed = isObject(open) && Array.isArray(open.constraints) ? open.constraints.filter(isObject) : []
  return (type) => listed.find((one) => one.type === type)
}

/**
 * The limits of such texts; null for any text that `createOpenMandates` does not write for them, byte for byte: what a person is
 * shown is then all of what is signed.
 */
export const readOpenMandates = (pair: OpenMandatePair): OpenMandateLimits | null => {
  try {
    const [ofCheckout, ofPayment] = [readConstraints(pair.checkout), readConstraints(pair.payment)]
    const { exp } = readJson(pair.payment) as { exp: number }
    const range = paymentConstraintSchemas['payment.amount_range'].parse(ofPayment('payment.amount_range'))
    const { 'payment.budget': budgets, 'payment.agent_recurrence': recurrences } = paymentConstraintSchemas
    const recurrence = recurrences.optional().parse(ofPayment('payment.agent_recurrence'))
    const limits = {
      merchants: checkoutConstraintSchemas['checkout.allowed_merchants'].parse(
        ofCheckout('checkout.allowed_merchants'),
      ).allowed as OpenMandateLimits['merchants'],
      items: checkoutConstraintSchemas['checkout.line_items']
        .parse(ofCheckout('checkout.line_items'))
        .items.map(({ acceptable_items, quantity }) => ({
          any_of: acceptable_items as OpenMandateLimits['items'][number]['any_of'],
          quantity,
        })),
      currency: range.currency,
      max_minor: range.max,
      expires_at: exp,
      budget_minor: budgets.optional().parse(ofPayment('payment.budget'))?.max ?? null,
      recurrence: recurrence
        ? { frequency: recurrence.frequency, max_occurrences: recurrence.max_occurrences ?? null }
        : null,
      instrument: paymentConstraintSchemas['payment.allowed_payment_instruments'].parse(
        ofPayment('payment.allowed_payment_instruments'),
      ).allowed[0] as OpenMandateLimits['instrument'],
    }
    const made = createOpenMandates(limits)
    return made.checkout === pair.checkout && made.payment === pair.payment ? limits : null
  } catch {
    return null
  }
}

/** Entries of lists of what is allowed are disclosed one by one, as AP2's schemas say. */
const concealEntries = (constraint: unknown): unknown => {
  if (!isObject(constraint)) return constraint
  const { allowed, items } = constraint
  return {
    ...constraint,
    ...(Array.isArray(allowed) && { allowed: allowed.map(conceal) }),
    ...(Array.isArray(items) && {
      items: items.map((item) => ({ ...item, acceptable_items: item.acceptable_items.map(conceal) })),
    }),
  }
}

/** Signs the texts of `createOpenMandates` for an agent: the payment mandate names the checkout mandate by `payment.reference`. */
export const signOpenMandates = async (
  pair: OpenMandatePair,
  agent: JsonObject,
  { issuer, iat }: { issuer: string; iat: number },
  key: SigningKey,
): Promise<OpenMandatePair> => {
  const sign = (text: string, ...added: JsonObject[]): Promise<string> => {
    const { constraints, ...content } = JSON.parse(text) as { constraints: unknown[] }
    const limits = [...constraints.map(concealEntries), ...added]
    return issueMandate({ ...content, constraints: limits, cnf: { jwk: agent }, iat }, key, {
      iss: issuer,
      iat,
    })
  }
  const checkout = await sign(pair.checkout)
  const reference = { type: 'payment.reference', conditional_transaction_id: hashText(checkout) }
  return { checkout, payment: await sign(pair.payment, reference) }
}

/** What an open payment mandate that was signed says of its agent's key, and with what is paid. Nothing about it is verified here. */
export const readOpenPayment = (
  token: string,
): { agent: unknown; instrument: OpenMandateLimits['instrument'] | null } => {
  const [root] = parseChain(token)
  const content = root && readContent(discloseClaims(root).claims, 'payment', true)
  const listed = Array.isArray(content?.constraints) ? content.constraints.filter(isObject) : []
  const { allowed } = listed.find(({ type }) => type === 'payment.allowed_payment_instruments') ?? {}
  const { cnf } = content ?? {}
  return {
    agent: isObject(cnf) ? cnf.jwk : null,
    instrument: (Array.isArray(allowed) ? allowed[0] : null) as OpenMandateLimits['instrument'] | null,
  }
}

/** Closes both mandates for one checkout with the agent's key: the chains that pay it. Times in seconds since 1970. */
export const closeOpenMandates = async (
  open: OpenMandatePair,
  { checkoutJwt, payment }: { checkoutJwt: string; payment: JsonObject },
  { exp, ...options }: { audience: string; nonce: string; iat: number; exp: number },
  key: SigningKey,
): Promise<OpenMandatePair> => {
  const closedCheckout = {
    vct: 'mandate.checkout.1',
    checkout_jwt: conceal(checkoutJwt),
    checkout_hash: hashText(checkoutJwt),
    iat: options.iat,
    exp,
  }
  return {
    checkout: await appendMandate(open.checkout, closedCheckout, key, options),
    payment: await appendMandate(open.payment, { ...payment, iat: options.iat, exp }, key, options),
  }
}
