import { randomBytes } from 'node:crypto'
import { ap2Keys as keys, ap2Texts as texts } from '../../src/features/ap2-wire.ts'
import { isObject } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { paymentMethodDataSchema } from '../../src/features/payments/mandates/v1/types.ts'
import { verifyReceipt } from '../../src/features/payments/mandates/verify/receipts.ts'
import { parseBy } from '../../src/features/payments/mandates/violations.ts'
import accountRows from './accounts.json' with { type: 'json' }
import { conclude, createVerifier, type Mandate, readMandate } from './mandates.ts'
import { type Answer, complete, fail, type Handle, type Incoming, refuse, type Tools } from './messages.ts'

/** A user's account: where things are shipped, and ways to pay, as the processor gets them. */
type Account = {
  shipping_address?: object
  payment_methods: { type: string; alias: string; network?: { name: string }[] }[]
}
const accounts = new Map<string, Account>(Object.entries(accountRows))

/**
 * A token for one payment. It belongs to the first mandate that uses it, and its lifetime counts from then, since the user may take
 * time to sign. Times are epoch seconds.
 */
type Token = Record<'value' | 'email' | 'alias', string> &
  Record<'mandate' | 'root' | 'usedBy', string | null> & {
    amount: number
    at: number
    boundAt: number | null
  }
/** A token that no mandate uses ends with the cart that it was asked for. */
const unboundSeconds = 1800

/** A wallet with addresses, payment methods and tokens for them. */
export const createCredentialsProvider = ({ self, books }: Tools): Handle => {
  const verifier = createVerifier(self, books, 'tokens')

  const findAccount = (message: Incoming): { email: string; account: Account } => {
    const email = message.textOf(keys.userEmail) ?? fail('Missing user_email.')
    return { email, account: accounts.get(email) ?? refuse(`Account not found for user_email: ${email}`) }
  }
  const getAddress = (message: Incoming): Answer => {
    const { email, account } = findAccount(message)
    const address = account.shipping_address ?? refuse(`Shipping address not found for user_email: ${email}`)
    return complete({ data: { [keys.contactAddress]: address } })
  }
  const getMethods = (message: Incoming): Answer => {
    const read = (one: unknown) => conclude(parseBy(paymentMethodDataSchema, one))
    const taken = message.all(keys.paymentMethod).map(read)
    const isTaken = ({ type, network = [] }: Account['payment_methods'][number]): boolean =>
      taken.some(({ supported_methods, data }) => {
        const wanted = data?.network
        const isOfNetwork = !Array.isArray(wanted) || network.some(({ name }) => wanted.includes(name))
        return supported_methods === type && isOfNetwork
      })
    const aliases = findAccount(message)
      .account.payment_methods.filter(isTaken)
      .map(({ alias }) => alias)
    return complete({ data: { [keys.methodAliases]: aliases } })
  }

  const createToken = (message: Incoming): Answer => {
    const { email, account } = findAccount(message)
    const alias = message.textOf(keys.methodAlias) ?? refuse('Missing payment_method_alias.')
    if (!account.payment_methods.some((one) => one.alias === alias))
      refuse(`Payment method not found: ${alias}`)
    const mandate = message.has(keys.paymentMandateSdJwt) ? readMandate(message) : null
    const tokens = books.list<Token>('tokens')
    // a mandate gets the token that it has, never a second one
    const known = tokens.find((one) => mandate !== null && one.mandate === mandate.id)
    if (known) return complete({ data: { [keys.token]: known.value } })
    const payment = mandate && verifier.verifyPayment(mandate, { hash: message.textOf(keys.checkoutHash) })
    const value = self.placeholders
      ? `fake_payment_credential_token_${tokens.length}`
      : `tok_${randomBytes(24).toString('hex')}`
    const at = self.now()
    const token: Token = {
      ...{ value, email, alias, at, boundAt: mandate && at, usedBy: null },
      ...{ mandate: mandate?.id ?? null, root: mandate?.root ?? null, amount: payment?.amount.minor ?? 0 },
    }
    books.write(['tokens', token.value, token])
    return complete({ data: { [keys.token]: token.value } })
  }

  const invalidToken = (): never => fail('An error occurred: Invalid token')
  /** The first mandate that comes with a token has it. */
  const bind = (message: Incoming, mandate: Mandate): Token => {
    const token = books.get<Token>('tokens', mandate.token ?? '') ?? invalidToken()
    const end = token.boundAt === null ? token.at + unboundSeconds : token.boundAt + self.token_seconds
    if (self.now() > end || (token.mandate !== null && token.mandate !== mandate.id)) invalidToken()
    const { payer, amount } = verifier.verifyPayment(mandate, { cart: message.get(keys.cartMandate) })
    if (payer.email !== null && payer.email !== token.email) invalidToken()
    if (token.mandate !== null) return token
    const { id, root } = mandate
    const bound = { ...token, mandate: id, root, amount: amount.minor, boundAt: self.now() }
    books.write(['tokens', token.value, bound])
    return bound
  }
  const receiveMandate = (message: Incoming): Answer => {
    bind(message, readMandate(message))
    return complete()
  }
  const getCredentials = (message: Incoming): Answer => {
    const mandate = readMandate(message)
    const used = books.get<Token>('tokens', mandate.token ?? '')
    // carried out again after a kill
    const isAgain = used?.usedBy === message.messageId && used.mandate === mandate.id
    const token = isAgain ? used : bind(message, mandate)
    if (!isAgain && token.usedBy !== null) invalidToken()
    if (!isAgain) books.write(['tokens', token.value, { ...token, usedBy: message.messageId }])
    const method = accounts.get(token.email)?.payment_methods.find(({ alias }) => alias === token.alias)
    return complete({ data: method ?? invalidToken() })
  }

  const receiveReceipt = (message: Incoming): Answer => {
    const receipt = message.get(keys.paymentReceipt)
    if (typeof receipt === 'string') {
      const chain = message.textOf(keys.paymentMandateSdJwt) ?? fail('Missing payment_mandate.')
      const known = { findKeys: verifier.findKeys, now: self.now() }
      const { payment_id, status } = conclude(verifyReceipt(receipt, 'payment', chain, known))
      books.write(['receipts', payment_id, { payment_id, mandate: readMandate(message).id, status }])
    } else if (isObject(receipt)) {
      const { payment_id, payment_mandate_id: mandate } = receipt
      if (!books.list<Token>('tokens').some((token) => token.mandate === mandate && token.usedBy !== null))
        refuse(`No payment is known of mandate: ${mandate}`)
      books.write(['receipts', String(payment_id), { payment_id, mandate, status: 'Success' }])
    } else refuse('Missing payment_receipt.')
    return complete()
  }

  return async (message) => {
    const { text, has } = message
    if (has(keys.paymentReceipt)) return receiveReceipt(message)
    if (has(keys.methodAlias)) return createToken(message)
    const hasMandate = has(keys.paymentMandate, keys.paymentMandateSdJwt)
    if (!hasMandate && (has(keys.paymentMethod) || text === texts.getMethods)) return getMethods(message)
    const isShown = hasMandate && has(keys.riskData) && text !== texts.getCredentials
    if (isShown || text === texts.sendMandate) return receiveMandate(message)
    if (hasMandate || text === texts.getCredentials) return getCredentials(message)
    return text === texts.getToken ? createToken(message) : getAddress(message)
  }
}
