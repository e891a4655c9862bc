import { ap2Keys as keys, ap2Texts as texts } from '../../src/features/ap2-wire.ts'
import { hashText } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { buildPaymentReceiptV1 } from '../../src/features/payments/mandates/v1/build.ts'
import cards from './cards.json' with { type: 'json' }
import {
  createVerifier,
  type Mandate,
  type PaidUnder,
  readMandate,
  signOutcome,
  toMandateParts,
} from './mandates.ts'
import { fail, type Handle, type Incoming, type Part, RefusalError, refuse, type Tools } from './messages.ts'

/** `tries`: the messages with a wrong code; `reason`: why it was declined. */
type Payment = PaidUnder &
  Record<'id' | 'hash' | 'currency' | 'payee', string> & {
    state: 'asking' | 'charging' | 'paid' | 'declined'
    tries: string[]
    reason?: string
    receipt: unknown
  }

/** The code of every challenge. */
const otp = '123'
const maxTries = 3
const { challenge } = cards['payment-processor']
const ask = (text: string) => ({
  state: 'input-required' as const,
  says: [{ text }, { data: { [keys.challenge]: challenge } }],
})

/** Charges cards for a merchant, after a code. No money moves. */
export const createProcessor = ({ self, books, call }: Tools): Handle => {
  const verifier = createVerifier(self, books, 'payments')
  const wallet = self.agents.credentials ?? ''
  const save = (payment: Payment, change: Partial<Payment>): Payment => {
    const next = { ...payment, ...change }
    books.write(['payments', payment.mandate, next])
    return next
  }

  const open = (message: Incoming, mandate: Mandate): Payment => {
    const cart = message.get(keys.cartMandate)
    const { amount, payee, instrument } = verifier.verifyPayment(mandate, { cart })
    if (instrument.type.toLowerCase() !== 'card') refuse(`"${instrument.type}" is no card.`)
    const id = `pay_${hashText(`${self.issuer} ${mandate.id}`).slice(0, 24)}`
    return {
      ...{ id, mandate: mandate.id, root: mandate.root, hash: mandate.hash, payee: payee.id ?? payee.name },
      ...{ amount: amount.minor, currency: amount.currency, at: self.now() },
      ...{ state: 'asking', tries: [], receipt: null },
    }
  }

  /** What became of a payment: plain JSON in AP2 0.1, signed in 0.2. */
  const toReceipt = async (payment: Payment, { version, text }: Mandate): Promise<unknown> => {
    const { id, mandate, amount, currency, reason } = payment
    const confirmed = { psp_confirmation_id: `psp_${id}`, network_confirmation_id: `net_${id}` }
    if (version === '0.2')
      return signOutcome(self, text, { payment_id: id, ...(reason === undefined && confirmed) }, reason)
    const success = { merchant_confirmation_id: id, ...confirmed }
    const { raw } = buildPaymentReceiptV1({
      ...{ payment_mandate_id: mandate, payment_id: id, amount: { currency, minor: amount } },
      timestamp: new Date(self.now() * 1000).toISOString(),
      payment_status: reason === undefined ? success : { failure_message: reason },
    })
    return JSON.parse(raw)
  }
  const toArtifact = (receipt: unknown): Part[] => [{ data: { [keys.paymentReceipt]: receipt } }]

  const decline = async (payment: Payment, mandate: Mandate, change: Partial<Payment>): Promise<never> => {
    const declined = { ...payment, ...change, state: 'declined' as const }
    save(declined, { receipt: await toReceipt(declined, mandate) })
    return refuse(declined.reason ?? '')
  }

  const charge = async (message: Incoming, mandate: Mandate, payment: Payment) => {
    const { contextId } = message
    const parts = toMandateParts(mandate, message.get(keys.cartMandate))
    const tell = (key: string, text: string, more: Part[]) =>
      call(wallet, { key: `${key} ${mandate.id}`, contextId, parts: [{ text }, ...more] })
    let paid = payment
    if (payment.state !== 'paid') {
      const reply = await tell('credentials', texts.getCredentials, parts)
      if (reply.state !== 'completed') return decline(payment, mandate, { reason: reply.texts.join(' ') })
      // here a real one would charge the card
      paid = save(payment, { state: 'paid', receipt: await toReceipt(payment, mandate) })
    }
    const receipt = toArtifact(paid.receipt)
    await tell('receipt', texts.receipt, [...receipt, ...parts.slice(0, 1)])
    return { state: 'completed' as const, says: [{ text: texts.success }], artifacts: [receipt] }
  }

  const pay = async (message: Incoming, mandate: Mandate) => {
    const known = books.get<Payment>('payments', mandate.id)
    if (known && known.hash !== mandate.hash)
      refuse(`The payment mandate ${mandate.id} was another one before.`)
    if (known?.state === 'declined') refuse(known.reason ?? '')
    if (known?.state === 'charging' || known?.state === 'paid') return charge(message, mandate, known)
    if (message.get(keys.riskData) === undefined) fail('Missing risk_data.')
    // again at each step: its time may be over
    const payment = { ...open(message, mandate), ...known }
    if (!known) save(payment, {})
    // its chain was verified: the person has signed before, and is away
    if (payment.root !== null) return charge(message, mandate, save(payment, { state: 'charging' }))
    const response = message.get(keys.challengeResponse)
    if (!known || response === undefined) return ask(texts.challenge)
    if (String(response) === otp) return charge(message, mandate, save(payment, { state: 'charging' }))
    const tries = [...new Set([...payment.tries, message.messageId])]
    if (tries.length >= maxTries) return decline(payment, mandate, { tries, reason: texts.wrongChallenge })
    save(payment, { tries })
    return ask(texts.wrongChallenge)
  }

  return async (message) => {
    const mandate = readMandate(message)
    return pay(message, mandate).catch(async (error: unknown) => {
      if (!(error instanceof RefusalError)) throw error
      const known = books.get<Payment>('payments', mandate.id)
      const receipt = known?.state === 'declined' && known.hash === mandate.hash ? known.receipt : null
      const isSigned = receipt === null && mandate.version === '0.2'
      const own = isSigned
        ? await signOutcome(self, mandate.text, { payment_id: 'none' }, error.message)
        : receipt
      error.artifacts = own ? [toArtifact(own)] : []
      throw error
    })
  }
}
