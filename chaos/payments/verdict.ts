import type { Payment } from '../../examples/card-provider/books.ts'

/** A payment as Mason's ledger has it. */
export type LedgerRow = {
  payment_id: string
  /** Null: there is an order and no payment. */
  status: string | null
  amount_minor: number
}

/** The sums of `mandate_spend`, in minor units. */
export type SpendSums = { reserved: number; spent: number }

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/** Compares Mason's ledger with the books of the provider, once nothing is under way and an operator has settled what was unknown. */
export const judgePayments = (rows: readonly LedgerRow[], spend: SpendSums, books: readonly Payment[]) => {
  const taken = new Map<string, Payment[]>()
  for (const payment of books)
    if (payment.captured > 0)
      taken.set(payment.payment_id, [...(taken.get(payment.payment_id) ?? []), payment])
  const known = new Set(rows.map(({ payment_id }) => payment_id))
  const doubled = [...taken].filter(([, charges]) => charges.length > 1).map(([id]) => id)
  const lost = rows.filter(({ status }) => !['succeeded', 'declined', 'released'].includes(status ?? ''))
  const failures = [
    ...doubled.map((id) => `${id} was charged ${taken.get(id)?.length} times`),
    ...lost.map(
      ({ payment_id, status }) => `${payment_id} was lost: it is ${status ?? 'an order without a payment'}`,
    ),
    ...[...taken.keys()].filter((id) => !known.has(id)).map((id) => `${id} was charged and never ordered`),
    ...rows.flatMap(({ payment_id, status, amount_minor }) => {
      const charged = sum((taken.get(payment_id) ?? []).map(({ captured }) => captured))
      const expected = status === 'succeeded' ? amount_minor : 0
      return charged === expected || lost.some((row) => row.payment_id === payment_id)
        ? []
        : [`${payment_id} is ${status} with ${expected}, and the provider has ${charged}`]
    }),
  ]
  const paid = sum(
    rows.filter(({ status }) => status === 'succeeded').map(({ amount_minor }) => amount_minor),
  )
  const charged = sum(books.map(({ captured }) => captured))
  if (spend.spent !== paid || paid !== charged || spend.reserved !== 0)
    failures.push(
      `mandate_spend has ${spend.spent} spent and ${spend.reserved} reserved, the payments ${paid}, the provider ${charged}`,
    )
  return {
    figures: { doubled: doubled.length, lost: lost.length, spent: spend.spent, paid, charged },
    failures,
  }
}
