import { randomBytes } from 'node:crypto'
import { isObject } from '../../src/payments/mandates/tokens/encoding.ts'
import { paymentMethodDataSchema } from '../../src/payments/mandates/v1/types.ts'
import { verifyReceipt } from '../../src/payments/mandates/verify/receipts.ts'
import { parseBy } from '../../src/payments/mandates/violations.ts'
import { ap2Keys as keys, ap2Texts as texts } from '../../src/state/ap2-wire.ts'
import { type Account, accounts, type Method } from './accounts.ts'
import { conclude, createVerifier, type Mandate, readMandate } from './mandates.ts'
import { type Answer, fail, type Incoming, type Part, refuse } from './messages.ts'
import type { Agent, Tools } from './server.ts'

/** For one payment: of the mandate that it is first used with. Times are epoch seconds. */
type Token = {
  value: string
  email: string
  alias: string
  mandate: string | null
  root: string | null
  amount: number
  at: number
  /** Of the mandate, from when on it counts. Before, a person may take time to sign. */
  boundAt: number | null
  usedBy: string | null
}

/** A token that no mandate uses ends with the cart that it was asked for. */
const unboundSeconds = 1800

/** A wallet with addresses, payment methods and tokens for them. */
export const createCredentialsProvider = ({ self, books }: Tools): Agent => {
  const verifier = createVerifier(self, books, 'tokens')
  const done = (...parts: Part[]): Answer => ({
    state: 'completed',
    ...(parts.length > 0 && { artifacts: [parts] }),
  })

  const findAccount = (message: Incoming): { email: string; account: Account } => {
    const email = message.textOf(keys.userEmail) ?? fail('Missing user_email.')
    return { email, account: accounts.get(email) ?? refuse(`Account not found for user_email: ${email}`) }
  }
  const getAddress = (message: Incoming): Answer => {
    const { email, account } = findAccount(message)
    const address = account.shipping_address ?? refuse(`Shipping address not found for user_email: ${email}`)
    return done({ data: { [keys.contactAddress]: address } })
  }
  const getMethods = (message: Incoming): Answer => {
    const { account } = findAccount(message)
    const taken = message
      .all(keys.paymentMethod)
      .map((one) => conclude(parseBy(paymentMethodDataSchema, one)))
    const isTaken = ({ type, network = [] }: Method): boolean =>
      taken.some(({ supported_methods, data }) => {
        const wanted = Array.isArray(data?.network) ? data.network : null
        return (
          supported_methods === type && (wanted === null || network.some(({ name }) => wanted.includes(name)))
        )
      })
    const aliases = account.payment_methods.filter(isTaken).map(({ alias }) => alias)
    return done({ data: { [keys.methodAliases]: aliases } })
  }

  const createToken = (message: Incoming): Answer => {
    const { email, account } = findAccount(message)
    const alias = message.textOf(keys.methodAlias) ?? refuse('Missing payment_method_alias.')
    if (!account.payment_methods.some((one) => one.alias === alias))
      refuse(`Payment method not found: ${alias}`)
    const known = books.list<Token & { message: string }>('tokens')
    const before = known.find((one) => one.message === message.messageId)
    if (before) return done({ data: { [keys.token]: before.value } })
    const isChain = message.keys.includes(keys.paymentMandateSdJwt)
    const mandate = isChain ? readMandate(message) : null
    const bound = mandate && known.find((one) => one.mandate === mandate.id)
    // the same mandate again gets the token that it has, never a second one
    if (bound) return done({ data: { [keys.token]: bound.value } })
    const payment = mandate && verifier.verifyPayment(mandate, { hash: message.textOf(keys.checkoutHash) })
    const value = self.placeholders
      ? `fake_payment_credential_token_${known.length}`
      : `tok_${randomBytes(24).toString('hex')}`
    const token: Token & { message: string } = {
      ...{
        value,
        email,
        alias,
        mandate: mandate?.id ?? null,
        root: mandate?.root ?? null,
        amount: payment?.amount.minor ?? 0,
      },
      ...{ at: self.now(), boundAt: mandate ? self.now() : null, usedBy: null, message: message.messageId },
    }
    books.write(['tokens', value, token])
    return done({ data: { [keys.token]: value } })
  }

  const invalidToken = (): never => fail('An error occurred: Invalid token')
  const findToken = ({ id, token: value }: Mandate): Token => {
    const token = (value && books.get<Token>('tokens', value)) || invalidToken()
    const isOver =
      token.boundAt === null
        ? self.now() > token.at + unboundSeconds
        : self.now() > token.boundAt + self.token_seconds
    return isOver || (token.mandate !== null && token.mandate !== id) ? invalidToken() : token
  }
  /** The first mandate that comes with a token has it. */
  const bind = (message: Incoming, mandate: Mandate): Token => {
    const token = findToken(mandate)
    const payment = verifier.verifyPayment(mandate, { cart: message.get(keys.cartMandate) })
    const email = payment.payer.email
    if (email !== null && email !== token.email) invalidToken()
    if (token.mandate !== null) return token
    const bound = {
      ...token,
      mandate: mandate.id,
      root: mandate.root,
      amount: payment.amount.minor,
      boundAt: self.now(),
    }
    books.write(['tokens', token.value, bound])
    return bound
  }
  const receiveMandate = (message: Incoming): Answer => {
    bind(message, readMandate(message))
    return done()
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
    return done({ data: method ?? invalidToken() })
  }

  const receiveReceipt = (message: Incoming): Answer => {
    const receipt = message.get(keys.paymentReceipt)
    const chain = message.textOf(keys.paymentMandateSdJwt)
    if (typeof receipt === 'string') {
      if (!chain) fail('Missing payment_mandate.')
      const { findKeys } = verifier
      const { payment_id, status } = conclude(
        verifyReceipt(receipt, 'payment', chain ?? '', { findKeys, now: self.now() }),
      )
      books.write(['receipts', payment_id, { payment_id, mandate: readMandate(message).id, status }])
    } else if (isObject(receipt)) {
      const { payment_id, payment_mandate_id: mandate } = receipt
      if (!books.list<Token>('tokens').some((token) => token.mandate === mandate && token.usedBy !== null))
        refuse(`No payment is known of mandate: ${mandate}`)
      books.write(['receipts', String(payment_id), { payment_id, mandate, status: 'Success' }])
    } else refuse('Missing payment_receipt.')
    return done()
  }

  return {
    role: 'credentials-provider',
    description: "Holds users' addresses and payment methods",
    skills: [
      { id: 'initiate_payment', name: 'Initiate Payment', description: 'Gives tokens for payments' },
      {
        id: 'get_eligible_payment_methods',
        name: 'Get Eligible Payment Methods',
        description: 'Lists methods that a merchant takes',
      },
      {
        id: 'get_account_shipping_address',
        name: 'Get Shipping Address',
        description: 'Says where a user wants things shipped',
      },
    ],
    async handle(message) {
      const { text } = message
      const has = (...names: string[]): boolean => names.some((name) => message.keys.includes(name))
      if (has(keys.paymentReceipt)) return receiveReceipt(message)
      if (has(keys.methodAlias)) return createToken(message)
      if (has(keys.paymentMandate, keys.paymentMandateSdJwt))
        return text !== texts.getCredentials && (has(keys.riskData) || text === texts.sendMandate)
          ? receiveMandate(message)
          : getCredentials(message)
      if (has(keys.paymentMethod) || text === texts.getMethods) return getMethods(message)
      if (text === texts.getToken) return createToken(message)
      if (text === texts.sendMandate) return receiveMandate(message)
      if (text === texts.getCredentials) return getCredentials(message)
      return getAddress(message)
    },
  }
}
