import { ap2Keys as keys, ap2Texts as texts } from '../../src/features/ap2-wire.ts'
import { hashText } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { checkPayee } from '../../src/features/payments/mandates/verify/payee.ts'
import { findProduct, type Product } from './catalogue.ts'
import {
  conclude,
  createVerifier,
  isChain,
  type Mandate,
  type PaidUnder,
  readMandate,
  signOutcome,
  toMandateParts,
} from './mandates.ts'
import {
  type Answer,
  fail,
  type Incoming,
  type Part,
  processText,
  RefusalError,
  refuse,
  type Tools,
} from './messages.ts'

/**
 * What a shopper may buy. `address` is the hash of that which its total is for, in minor units. `wire` and `checkout` are it as it was signed in AP2 0.1 and in 0.2. Times are epoch seconds.
 */
export type Cart = Record<'id' | 'order' | 'sku' | 'context', string> &
  Record<'total' | 'expires', number> & { address?: string; wire?: object; checkout?: string }

/**
 * The payment of a cart. It keeps a unit, unless it failed, or waits for a code longer than its cart can be paid. `message` is
 * carried out, or was; `checkoutMandate` and `token` are of AP2 0.2, from its first message: that with the code has neither.
 */
type Order = PaidUnder &
  Record<'sku' | 'task' | 'message' | 'processor', string> & {
    state: 'paying' | 'asking' | 'paid' | 'failed'
    expires: number
    checkoutMandate?: string | undefined
    token?: string | undefined
    processorTask: string | null
    artifacts: Part[][]
  }

/** The orders of the merchant: units of stock, and payments by the processors of the configuration, by method. */
export const createOrders = ({ self, books, call }: Tools) => {
  const verifier = createVerifier(self, books, 'orders')

  const countFree = ({ sku }: Product): number => {
    const isTaken = (one: Order): boolean =>
      one.sku === sku && one.state !== 'failed' && (one.state !== 'asking' || one.expires > self.now())
    return (self.stock[sku] ?? 100) - books.list<Order>('orders').filter(isTaken).length
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
    const { checkout, openCheckoutHash } = verifier.verifyCheckout(chain, hash)
    const payment = verifier.verifyV2(mandate, hash, openCheckoutHash)
    const violations = checkPayee(checkout, payment.closed, self.issuer)
    if (violations.length > 0) conclude({ ok: false, violations })
    return payment
  }

  /** A new order, or the next message of one: verified, with a unit of stock. */
  const take = (message: Incoming, mandate: Mandate, cart: Cart, before: Order | undefined): Order => {
    const checkoutMandate = findChain(message, mandate)
    const { id, root, method, token = before?.token } = mandate
    const { taskId: task, messageId } = message
    try {
      const isTaker = ([name]: [string, string]) => name.toLowerCase() === method.toLowerCase()
      const [, processor] =
        Object.entries(self.agents).find(isTaker) ?? fail(`No payment processor found for method: ${method}`)
      const { amount } = verify(checkoutMandate, mandate, cart)
      if (!before || before.state === 'failed') checkStock(cart.sku)
      const order: Order = {
        ...{ mandate: id, root, amount: amount.minor, at: self.now(), sku: cart.sku, expires: cart.expires },
        ...{ state: 'paying', task, message: messageId, processor, artifacts: [], checkoutMandate, token },
        processorTask: before?.task === task ? before.processorTask : null,
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
    const success = (artifacts: Part[][]): Answer => ({
      ...{ state: 'completed', says: [{ text: texts.success }], artifacts },
    })
    if (before?.state === 'paid') return success(before.artifacts)
    const isAgain = before?.state === 'paying' && before.message === message.messageId
    const order = isAgain ? before : take(message, mandate, cart, before)
    const { processor, processorTask, token, checkoutMandate: chain } = order
    const response = message.get(keys.challengeResponse)
    const reply = await call(processor, {
      ...{ key: `pay ${message.messageId}`, contextId: message.contextId },
      ...(processorTask && { taskId: processorTask }),
      parts: [
        { text: processText },
        ...toMandateParts({ ...mandate, token }, cart.wire),
        { data: { [keys.riskData]: risk } },
        ...(response === undefined ? [] : [{ data: { [keys.challengeResponse]: response } }]),
      ],
    })
    const says = reply.texts.map((text): Part => ({ text }))
    const artifacts = reply.data.map((one): Part[] => [{ data: one }])
    const end = (state: Order['state'], made: Part[][] = []): void =>
      books.write(['orders', cart.id, { ...order, state, artifacts: made, processorTask: reply.task_id }])
    if (reply.state === 'input-required') {
      end('asking')
      return { state: 'input-required', says: [...says, ...artifacts.flat()] }
    }
    if (reply.state !== 'completed') {
      end('failed')
      return { state: 'rejected', says, artifacts }
    }
    const receipt = chain && (await signOutcome(self, chain, { order_id: cart.order }))
    if (receipt) artifacts.push([{ data: { [keys.checkoutReceipt]: receipt } }])
    end('paid', artifacts)
    return success(artifacts)
  }

  return {
    countFree,
    checkStock,
    checkUnpaid,
    /** Pays a cart, step by step: a refusal in AP2 0.2 has a receipt too. */
    async pay(message: Incoming): Promise<Answer> {
      const mandate = readMandate(message)
      const chain = findChain(message, mandate)
      return process(message, mandate).catch(async (error: unknown) => {
        if (!(error instanceof RefusalError) || !isChain(chain)) throw error
        const receipt = await signOutcome(self, chain, {}, error.message)
        error.artifacts = [[{ data: { [keys.checkoutReceipt]: receipt } }]]
        throw error
      })
    },
  }
}
