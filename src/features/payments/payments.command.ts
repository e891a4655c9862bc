import { defineCommand } from '../command-definition.ts'
import type { PaymentTrail } from './ledger/payment-queries.ts'

type TrailFlags = { url?: string; token?: string; business: string; json?: boolean }

export default defineCommand({
  name: 'payments',
  description: 'the executor of payments (needs MASON_PAYMENT_DATABASE_URL and MASON_PAYMENT_KEY)',
  add(payments, { addTargetOptions, withAdmin, runProcess }) {
    payments.action(() => runProcess('payments'))
    addTargetOptions(payments.command('trail'))
      .description('print what is known of a payment: mandates, checks, requests to the provider, receipt')
      .argument('<id>', 'the id of the payment')
      .option('--business <id>', 'business of the payment', 'default')
      .option('--json', 'print one JSON object')
      .action((id: string, flags: TrailFlags) =>
        withAdmin(flags, async ({ call, print }) => {
          const path = `/v1/payments/${encodeURIComponent(id)}`
          const trail = (await call('GET', path, undefined, { business_id: flags.business })) as PaymentTrail
          print(flags.json ? JSON.stringify(trail, null, 2) : formatTrail(trail))
        }),
      )
  },
})

/** Control characters of texts that come from others. */
const toLine = (value: unknown): string =>
  (typeof value === 'string' ? value : JSON.stringify(value)).replace(/\p{Cc}|\p{Cf}/gu, ' ').slice(0, 300)

/** For people: what it is, what was signed by whom, what was checked, what was sent, and how it ended. */
const formatTrail = ({ payment, mandates, operations, events }: PaymentTrail): string =>
  [
    `${payment.id}: ${payment.status}${payment.outcome ? `. ${toLine(payment.outcome.message)}` : ''}`,
    ...(payment.amount
      ? [
          `  ${payment.amount.minor} minor units of ${payment.amount.currency} to ${toLine(payment.payee?.name ?? 'an unknown payee')}${payment.refunded_minor > 0 ? `, ${payment.refunded_minor} refunded` : ''}`,
        ]
      : []),
    ...(payment.provider_id
      ? [`  by ${payment.provider_id}, there ${toLine(payment.provider_ref ?? 'without a reference')}`]
      : []),
    ...(payment.demo ? [`  demo: not checked were ${payment.skipped_checks.join(', ')}`] : []),
    'signed',
    ...mandates.map(
      (one) => `  ${one.verified_at}  ${one.kind}, by key ${one.issuer_key}, over ${one.signing_hash}`,
    ),
    'steps',
    ...events.map(
      ({ at, kind, detail }) =>
        `  ${at}  ${toLine(kind)}${Object.keys(detail).length > 0 ? `  ${toLine(detail)}` : ''}`,
    ),
    'requests to the provider',
    ...operations.map(
      (one) =>
        `  ${one.first_sent_at ?? 'not sent'}  ${one.kind} of ${one.amount_minor} ${one.currency}: ${one.status}, sent ${one.sends} times, key ${one.id}`,
    ),
    `receipt  ${payment.receipt ?? 'none'}`,
  ].join('\n')
