/** A payment as Mason's ledger has it; `mandate` as the processor names it. A status of null: there is an order and no payment. */
export type PaidRow = { payment_id: string; status: string | null; amount: number; mandate: string | null }

/** What the agents wrote. */
export type Books = {
  payments: { mandate: string; state: string; amount: number }[]
  orders: { mandate: string; state: string; amount: number }[]
  receipts: { mandate: string; status: string }[]
  tokens: { mandate: string | null; usedBy: string | null }[]
}

/** Whether it is not known what became of a payment. */
export const isLost = ({ status }: PaidRow): boolean =>
  status === null || !/succeeded|declined|released/.test(status)
const isPaid = ({ state }: { state: string }): boolean => state === 'paid'
const sum = (rows: readonly { amount: number }[]): number =>
  rows.reduce((total, { amount }) => total + amount, 0)

/** Compares the books of Mason, merchant, wallet and processor. `bought` is how often the user read that it was bought. */
export const judgePurchases = (rows: readonly PaidRow[], books: Books, bought: number) => {
  const paid = rows.filter(({ status }) => status === 'succeeded')
  const [charged, sold] = [books.payments.filter(isPaid), books.orders.filter(isPaid)]
  const doubled = paid.filter(({ mandate }) => paid.filter((one) => one.mandate === mandate).length > 1)
  const lost = rows.filter(isLost)
  const known = new Map(rows.map((row) => [row.mandate, row]))
  const failures = [
    ...doubled.map(({ payment_id }) => `${payment_id} has the mandate of another payment`),
    ...lost.map(({ payment_id, status }) => `${payment_id} was lost: it is ${status ?? 'an order'}`),
    ...charged
      .filter(({ mandate }) => known.get(mandate)?.status !== 'succeeded')
      .map(
        ({ mandate }) => `the processor charged ${mandate}, which Mason has as ${known.get(mandate)?.status}`,
      ),
    ...paid.flatMap(({ payment_id, mandate, amount }) => {
      const has = (list: readonly { mandate: string | null }[]) =>
        list.filter((one) => one.mandate === mandate).length
      const counts = {
        processor: has(charged.filter((one) => one.amount === amount)),
        merchant: has(sold.filter((one) => one.amount === amount)),
        'receipt of the wallet': has(books.receipts),
        'used token': has(books.tokens.filter(({ usedBy }) => usedBy !== null)),
      }
      return Object.entries(counts).flatMap(([who, n]) =>
        n === 1 ? [] : [`${payment_id}: ${who} ${n} times`],
      )
    }),
  ]
  const sums = [sum(paid), sum(charged), sum(sold)]
  if (new Set(sums).size > 1) failures.push(`Mason, processor and merchant have the sums ${sums.join(', ')}`)
  if (bought !== paid.length)
    failures.push(`users read ${bought} times that it was bought, of ${paid.length}`)
  return {
    figures: { doubled: doubled.length, lost: lost.length, paid: paid.length, sum: sums[0] ?? 0 },
    failures,
  }
}
