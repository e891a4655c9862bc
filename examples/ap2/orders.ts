import { parseChain } from '../../src/payments/mandates/tokens/chain.ts'
import { hashText } from '../../src/payments/mandates/tokens/encoding.ts'
import { attempt } from '../../src/payments/mandates/tokens/token-error.ts'
import { verifyCheckoutChain } from '../../src/payments/mandates/verify/chains.ts'
import { checkPayee } from '../../src/payments/mandates/verify/payee.ts'
import { ap2Keys as keys, ap2Texts as texts } from '../../src/state/ap2-wire.ts'
import { findProduct, type Product } from './catalogue.ts'
import {
  conclude,
  createVerifier,
  type Mandate,
  type PaidUnder,
  readMandate,
  signOutcome,
  toMandateParts,
} from './mandates.ts'
import { type Answer, fail, type Incoming, type Part, RefusalError, refuse } from './messages.ts'
import type { Tools } from './server.ts'

/** What a shopper may buy. Times are epoch seconds. */
export type Cart = {
  id: string
  order: string
  sku: string
  context: string
  /** The message that it was found for. */
  search: string
  /** In minor units; 0: not known yet. */
  total: number
  expires: number
  /** The hash of the address that its price is for. */
  address?: string
  /** As it was signed, in AP2 0.1 and in 0.2. */
  wire?: object
  checkout?: string
}

/** The payment of a cart. It keeps a unit, unless it failed, or waits for a code longer than its cart can be paid. */
type Order = PaidUnder & {
  sku: string
  state: 'paying' | 'asking' | 'paid' | 'failed'
  expires: number
  task: string
  /** The message that is carried out, or was. */
  message: string
  processor: string
  /** Of AP2 0.2, from its first message: that with the code has neither. */
  checkoutMandate?: string | undefined
  token?: string | undefined
  processorTask: string | null
  artifacts: Part[][]
}

/** The orders of the merchant: units of stock, and payments by the processors of the configuration, by method. */
export const createOrders = ({ self, books, call }: Tools) => {
  const verifier = createVerifier(self, books, 'orders')

  const countFree = ({ sku, stock }: Product): number => {
    const isTaken = (one: Order): boolean =>
      one.sku === sku && one.state !== 'failed' && (one.state !== 'asking' || one.expires > self.now())
    return (self.stock[sku] ?? stock) - books.list<Order>('orders').filter(isTaken).length
  }
  const checkStock = (sku: string): void => {
    const product = findProduct(sku)
    if (countFree(product) < 1) refuse(`"${product.label}" is sold out.`)
  }
  /** Refuses where another mandate pays this cart, or has paid it. */
  const checkUnpaid = (cart: string, mandate?: string): void => {
    const order = books.get<Order>('orders', cart)
    if (order && order.state !== 'failed' && order.mandate !== mandate)
      refuse(`${cart} is ${order.state === 'paid' ? 'paid' : 'being paid'} already.`)
  }

  /** The checkout mandate of a message, or of the first one of its payment. */
  const findChain = (message: Incoming, { id }: Mandate): string | undefined =>
    message.textOf(keys.checkoutMandateSdJwt) ??
    books.list<Order>('orders').find(({ mandate }) => mandate === id)?.checkoutMandate

  /** What the mandates of a message pay, once they are found to be of this cart. */
  const verify = (chain: string | undefined, mandate: Mandate, cart: Cart) => {
    if (mandate.version === '0.1') return verifier.verifyPayment(mandate, { cart: cart.wire })
    if (chain === undefined)
      return refuse('The checkout mandate is missing: send it beside the payment mandate.')
    const hash = hashText(cart.checkout ?? '')
    const { payload = {} } = attempt([], () => parseChain(chain))?.at(-1)?.jws ?? {}
    const verdict = verifyCheckoutChain(chain, verifier.toKnown(payload), { checkoutHash: hash })
    const { checkout, openCheckoutHash } = conclude(verdict)
    const { closed, ...payment } = verifier.verifyV2(mandate, { hash, open: openCheckoutHash })
    const violations = checkPayee(checkout, closed, self.issuer)
    if (violations.length > 0) conclude({ ok: false, violations })
    return payment
  }

  /** A new order, or the next message of one: verified, with a unit of stock. */
  const take = (message: Incoming, mandate: Mandate, cart: Cart, before: Order | undefined): Order => {
    const chain = findChain(message, mandate)
    try {
      const { amount, instrument } = verify(chain, mandate, cart)
      const processor =
        Object.entries(self.agents).find(([name]) => name.toLowerCase() === instrument.type.toLowerCase()) ??
        fail(`No payment processor found for method: ${instrument.type}`)
      if (!before || before.state === 'failed') checkStock(cart.sku)
      const order: Order = {
        ...{ mandate: mandate.id, root: mandate.root, amount: amount.minor, at: self.now(), sku: cart.sku },
        ...{ state: 'paying', task: message.taskId, message: message.messageId, expires: cart.expires },
        ...{
          processor: processor[1],
          artifacts: [],
          checkoutMandate: chain,
          token: mandate.token ?? before?.token,
        },
        processorTask: before?.task === message.taskId ? before.processorTask : null,
      }
      books.write(['orders', cart.id, order])
      return order
    } catch (error) {
      // what waits for a code and can no longer be paid gives its unit back
      if (before?.state === 'asking') books.write(['orders', cart.id, { ...before, state: 'failed' }])
      throw error
    }
  }

  const process = async (message: Incoming, mandate: Mandate): Promise<Answer> => {
    const risk = message.get(keys.riskData) ?? fail('Missing risk_data.')
    const isPaidBy = ({ order, checkout }: Cart): boolean =>
      mandate.version === '0.1'
        ? order === mandate.checkout
        : checkout !== undefined && hashText(checkout) === mandate.checkout
    const cart =
      books.list<Cart>('carts').find(isPaidBy) ??
      fail(`CartMandate not found for cart_id: ${mandate.checkout}`)
    checkUnpaid(cart.id, mandate.id)
    const before = books.get<Order>('orders', cart.id)
    const success: Part[] = [{ text: texts.success }]
    if (before?.state === 'paid') return { state: 'completed', says: success, artifacts: before.artifacts }
    const isAgain = before?.state === 'paying' && before.message === message.messageId
    const order = isAgain ? before : take(message, mandate, cart, before)
    const response = message.get(keys.challengeResponse)
    const reply = await call(order.processor, {
      ...{ key: `pay ${message.messageId}`, contextId: message.contextId },
      ...(order.processorTask && { taskId: order.processorTask }),
      parts: [
        { text: texts.process },
        ...toMandateParts({ ...mandate, token: order.token }, cart.wire),
        { data: { [keys.riskData]: risk } },
        ...(response === undefined ? [] : [{ data: { [keys.challengeResponse]: response } }]),
      ],
    })
    const says = reply.texts.map((text): Part => ({ text }))
    const data = reply.data.map((one): Part => ({ data: one }))
    const end = (state: Order['state'], artifacts: Part[][] = []): void =>
      books.write(['orders', cart.id, { ...order, state, artifacts, processorTask: reply.task_id }])
    if (reply.state === 'input-required') {
      end('asking')
      return { state: 'input-required', says: [...says, ...data] }
    }
    if (reply.state !== 'completed') {
      end('failed')
      return { state: 'rejected', says, artifacts: data.map((one) => [one]) }
    }
    const chain = order.checkoutMandate
    const receipt = chain && (await signOutcome(self, chain, { order_id: cart.order }))
    const artifacts = [...data, ...(receipt ? [{ data: { [keys.checkoutReceipt]: receipt } }] : [])]
    end(
      'paid',
      artifacts.map((one) => [one]),
    )
    return { state: 'completed', says: success, artifacts: artifacts.map((one) => [one]) }
  }

  return {
    countFree,
    checkStock,
    checkUnpaid,
    /** Pays a cart, step by step: a refusal in AP2 0.2 has a receipt too. */
    async pay(message: Incoming): Promise<Answer> {
      const mandate = readMandate(message)
      const chain = findChain(message, mandate) ?? ''
      return process(message, mandate).catch(async (error: unknown) => {
        if (!(error instanceof RefusalError) || !attempt([], () => parseChain(chain))) throw error
        const receipt = await signOutcome(self, chain, {}, error.message)
        error.artifacts = [[{ data: { [keys.checkoutReceipt]: receipt } }]]
        throw error
      })
    },
  }
}
