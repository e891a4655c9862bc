import { type Listening, startModel, type Talk } from '../purchase/model.ts'

/** The scripted model of `npm run demo:buy`: it plays a shopper, one tool after another. */

/** Where the user of the demo has an account, and what they say. */
const email = 'bugsbunny@gmail.com'
export const prompt = `Buy me an espresso coffee maker that I can return. I have an account as ${email}.`

/** Limits within which Mason buys at a merchant while they are away, and what a schedule says then. */
export const toLimitsPrompt = (merchant: string): string =>
  'While I am away you may buy more of them: the Professional-grade espresso machine (ESP-PRO), one at a time, from Generic Merchant ' +
  `(${merchant}). At most 650 USD for one and 1000 USD in all, within a month, with American Express ending in 4444 of ${email}, my ` +
  'account at the agent "wallet".'
export const awayPrompt = 'Buy the item of my open mandate.'

/** What the user answers to a question of the demo. */
export const answerQuestion = ({ format }: { format?: unknown }, [first]: readonly string[]): string =>
  format === 'one-time-code' ? '123' : (first ?? 'Yes')

const whilePresent = [
  'create_intent_mandate',
  'find_products',
  'choose_cart',
  'get_shipping_address',
  'update_cart',
  'get_payment_methods',
  'get_payment_credential_token',
  'create_payment_mandate',
]
const whileAway = ['find_item', 'get_shipping_address', 'update_cart', 'use_open_mandate']
const why =
  'The professional-grade machine makes the best espresso of the three, and can be returned for the longest time.\n' +
  'The other two cost less; the compact one fits into a small kitchen.'

const toArguments = (name: string, results: string, asked: string): object => {
  switch (name) {
    case 'create_intent_mandate':
      return { description: 'espresso coffee maker', requires_refundability: true }
    case 'choose_cart': {
      const ids = /Cart ids, in this order: ([\w, ]+)/.exec(results)?.[1]?.split(', ') ?? []
      return { cart_ids: ids.reverse(), why }
    }
    case 'propose_open_mandate': {
      const url = /\((http[^)]+)\)/.exec(asked)?.[1] ?? ''
      return {
        merchants: [{ id: url, name: 'Generic Merchant', website: url }],
        items: [{ any_of: [{ id: 'ESP-PRO', title: 'Professional-grade espresso machine' }], quantity: 1 }],
        ...{ currency: 'USD', max_amount: '650', budget: '1000', recurrence: { frequency: 'ON_DEMAND' } },
        until: new Date(Date.now() + 30 * 86_400_000).toISOString(),
        ...{ method: 'American Express ending in 4444', wallet: { agent: 'wallet', user_email: email } },
      }
    }
    case 'get_shipping_address':
      return { email }
    default:
      return {}
  }
}

/** What was bought, as the tools said it. */
const sayBought = (said: string): string => {
  const item = /(?:The user chose|has) (.+) \(cart /.exec(said)?.[1]
  const [, total, seller] = /Total: (.+)\. Sold by: (.+)\./.exec(said) ?? []
  return `I bought it: ${item} for ${total} from ${seller}. The receipt was checked.`
}

const think = (talk: Talk) => {
  const called = talk.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => call.function.name))
  const results = talk.flatMap(({ role, content }) => (role === 'tool' ? (content ?? '') : []))
  const result = results.at(-1) ?? ''
  const all = results.join('\n')
  const last = called.at(-1)
  const asked = talk.flatMap(({ role, content }) => (role === 'user' ? (content ?? '') : [])).join(' ')
  const order = asked.includes('While I am away')
    ? ['propose_open_mandate']
    : asked.includes(awayPrompt)
      ? whileAway
      : whilePresent
  if (last === order.at(-1)) {
    const isDone = /is succeeded|The user signed the/.exec(result)?.[0]
    if (isDone === undefined) return { content: `I did not buy it. ${result}` }
    return { content: order.length === 1 ? 'I buy within these limits.' : sayBought(all) }
  }
  if (/^Error/m.test(result)) return { content: `I could not buy it. ${result}` }
  if (last === 'create_intent_mandate' && !result.includes('The user confirmed it'))
    return { content: `I bought nothing. You said: ${result}` }
  // the user named none of the offers: they are asked again
  const isMissed = last === 'choose_cart' && !result.includes('The user chose')
  const name = order[last === undefined ? 0 : order.indexOf(last) + (isMissed ? 0 : 1)] ?? ''
  return { name, args: toArguments(name, all, asked) }
}

export const startShopper = (): Promise<Listening> => startModel(think)
