import { ap2Keys, ap2Texts } from '../../src/features/ap2-wire.ts'
import type { SigningKey } from '../../src/features/payments/mandates/tokens/keys.ts'
import { signReceipt, toReferences } from '../../src/features/payments/mandates/verify/receipts.ts'
import { type AgentServer, type Answer, type Received, startAgentServer } from './agent-servers.ts'
import { parties } from './mandate-parties.ts'

type Mandate = {
  payment_mandate_contents: {
    payment_mandate_id: string
    payment_details_total: { amount: { currency: string; value: number } }
  }
}

/** What a test changes about what a shop says. */
export type ShopChanges = {
  /** No code is asked for. */
  open?: boolean
  /** In place of its answer once it has taken the money. */
  done?: (answer: Answer) => Answer
  /** Who signs receipts. */
  signing?: SigningKey
  receipt?: object
  /** In place of all answers to a payment. */
  says?: Answer
}

/** A merchant with its processor, and a credentials provider: agents that know AP2 and keep books. */
export type Shop = {
  merchant: AgentServer
  provider: AgentServer
  /** The ids of mandates that were paid, once for each time. */
  books: string[]
  /** The ids of mandates that the credentials provider was shown. */
  shown: string[]
  changes: ShopChanges
  close(): Promise<void>
}

const code = '123'
const challenge = { [ap2Keys.challenge]: { type: 'otp', display_text: 'Type the code 123.' } }

/** The id of a payment mandate as it is sent: that of 0.1, or the chain of 0.2. */
const readMandate = ({ data }: Received) => {
  const v1 = data[ap2Keys.paymentMandate] as Mandate | undefined
  const chain = data[ap2Keys.paymentMandateSdJwt] as string | undefined
  return { v1, chain, id: v1?.payment_mandate_contents.payment_mandate_id ?? chain ?? '' }
}

const now = () => Math.floor(Date.now() / 1000)

/** Starts both on an SDK of a version of the protocol. */
export const startShop = async (version: '1.0' | '0.3'): Promise<Shop> => {
  const [merchant, provider] = await Promise.all([startAgentServer(version), startAgentServer(version)])
  const shop: Shop = {
    ...{ merchant, provider, books: [], shown: [], changes: {} },
    close: async () => void (await Promise.all([merchant.close(), provider.close()])),
  }
  const take = async (received: Received): Promise<Answer> => {
    const { open, says, done = (answer) => answer, receipt = {}, signing } = shop.changes
    if (says) return says
    const { v1, chain, id } = readMandate(received)
    const response = received.data[ap2Keys.challengeResponse]
    if (!open && response === undefined)
      return { state: 'input-required', says: [{ text: ap2Texts.challenge }, { data: challenge }] }
    if (!open && response !== code)
      return { state: 'input-required', says: [{ text: ap2Texts.wrongChallenge }, { data: challenge }] }
    shop.books.push(id)
    const common = { payment_id: 'psp-1' }
    const value = v1
      ? {
          ...{ ...common, payment_mandate_id: id, timestamp: new Date().toISOString() },
          amount: v1.payment_mandate_contents.payment_details_total.amount,
          payment_status: { merchant_confirmation_id: 'm-1', network_confirmation_id: 'n-1' },
          ...receipt,
        }
      : await signReceipt(
          {
            ...{ ...common, status: 'Success', iss: 'https://processor.example', iat: now() },
            ...{ reference: toReferences(chain ?? '').jwtHash },
            ...{ psp_confirmation_id: 'p-1', network_confirmation_id: 'n-1', ...receipt },
          },
          signing ?? parties.processor.signing,
        )
    return done({
      state: 'completed',
      says: [{ text: ap2Texts.success }],
      artifacts: [[{ data: { [ap2Keys.paymentReceipt]: value } }]],
    })
  }
  merchant.answer = (received) => take(received)
  provider.answer = (received) => {
    const { chain, id } = readMandate(received)
    shop.shown.push(id)
    return {
      state: 'completed',
      ...(chain !== undefined && { artifacts: [[{ data: { [ap2Keys.token]: `token of ${id.length}` } }]] }),
    }
  }
  return shop
}
