/** What Mason asks for: whole minor units, and the token of an instrument that the company gave the user. */
export type Order = { payment_id: string; amount: number; currency: string; credential: string }
/** What became of it at the company. `declined` promises that no money moved under this key, and none will. */
export type Charge = { ref: string } & (
  | { status: 'succeeded' | 'pending' }
  | { status: 'declined'; code: string }
)

/** What differs from company to company. Each call throws where it is not known what became of a charge. */
export type Company = {
  /** For how long the same key with the same order acts once. */
  windowMs: number
  charge(key: string, order: Order): Promise<Charge>
  read(ref: string): Promise<Charge>
}

type Body = { id?: string; status?: string; error?: { code?: string; charge?: string } }

/**
 * A company with `POST /charges`, an `Idempotency-Key` that holds for a day, and 402 for a card that was declined. Change this file for
 * yours: its names, and which of its errors are certain to have moved no money.
 */
export const openCompany = (url: string, apiKey: string): Company => {
  const call = async (path: string, init: RequestInit = {}): Promise<Charge> => {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...init.headers }
    const response = await fetch(url + path, { ...init, headers, signal: AbortSignal.timeout(20_000) })
    const { id, status, error } = (await response.json()) as Body
    if (response.status === 402)
      return { status: 'declined', ref: error?.charge ?? 'none', code: error?.code ?? 'card_declined' }
    if (response.ok && id && (status === 'succeeded' || status === 'pending')) return { status, ref: id }
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
