/** What Mason asks for: whole minor units, and the token of an instrument that the company gave the user. */
export type Order = { payment_id: string; amount: number; currency: string; credential: string }
/**
 * What became of it, with amount and currency as the company says them: Mason compares them with what was approved. `declined` promises
 * that no money moved under this key, and none will.
 */
export type Charge =
  | { ref: string; status: 'succeeded' | 'pending'; amount: number; currency: string }
  | { ref: string; status: 'declined'; code: string }

/** What differs from company to company. Each call throws where it is not known what became of a charge. */
export type Company = {
  /** For how long the same key with the same order acts once. */
  windowMs: number
  charge(key: string, order: Order): Promise<Charge>
  /** Moves no money. */
  read(ref: string): Promise<Charge>
}

type Body = {
  id?: string
  status?: string
  amount?: number
  currency?: string
  error?: { code?: unknown; charge?: string }
}

/** Why cards are declined. A 402 with another code, or none, may be of a gateway or of your own account. */
const declines = ['card_declined', 'insufficient_funds', 'expired_card', 'invalid_card']

/**
 * A company with `POST /charges`, an `Idempotency-Key` that holds for a day, and 402 for a card that was declined. Change this file for
 * yours: its names, and which of its errors are certain to have moved no money.
 */
export const openCompany = (url: string, apiKey: string): Company => {
  const call = async (path: string, init: RequestInit = {}): Promise<Charge> => {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...init.headers }
    const response = await fetch(url + path, { ...init, headers, signal: AbortSignal.timeout(20_000) })
    const { id, status = '', amount, currency, error } = (await response.json()) as Body
    const code = declines.find((known) => known === error?.code)
    if (response.status === 402 && code) return { status: 'declined', ref: error?.charge ?? 'none', code }
    if (response.ok && id && ['failed', 'declined'].includes(status))
      return { status: 'declined', ref: id, code: code ?? 'card_declined' }
    const isCharged = response.ok && id && typeof amount === 'number' && typeof currency === 'string'
    if (isCharged && (status === 'succeeded' || status === 'pending'))
      return { status, ref: id, amount, currency }
    throw new Error(`the company answered ${response.status}, which says nothing of the charge`)
  }
  return {
    windowMs: 86_400_000,
    charge: (key, { payment_id, amount, currency, credential }) =>
      call('/charges', {
        ...{ method: 'POST', headers: { 'idempotency-key': key } },
        body: JSON.stringify({ amount, currency, source: credential, metadata: { payment_id } }),
      }),
    read: (ref) => call(`/charges/${encodeURIComponent(ref)}`),
  }
}
