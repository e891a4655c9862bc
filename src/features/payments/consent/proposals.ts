import type { Sql } from '../../../state/ports/sql.ts'
import { formatMoney } from '../mandates/money.ts'
import { readOpenMandates } from '../mandates/v2/open-mandates.ts'
import { toIssuerNames } from '../mandates/verify/payee.ts'
import type { LimitLine, OpenMandateLimits, WalletAccount } from '../ports/run-mandates.ref.ts'
import { createTrust } from '../trust/trust.ts'
import { type OpenConsentRequest, type OpenFacts, refuse } from './content.ts'

/** The issuers whose trusted keys may sign the checkouts of a merchant: as `checkAllowedIssuers` decides when it is paid. */
const listIssuers = async (
  sql: Sql,
  tenant: string,
  merchant: OpenMandateLimits['merchants'][number],
): Promise<string[]> => {
  const trust = createTrust(sql)
  const found = await Promise.all(
    [...toIssuerNames(merchant)].map((issuer) =>
      trust.find({ business_id: tenant, role: 'merchant', issuer }),
    ),
  )
  return [...new Set(found.flatMap<{ issuer: string }>(({ keys }) => keys).map(({ issuer }) => issuer))]
}

/**
 * Whose trusted keys must sign the checkouts of each merchant. Throws `invalid_request` for a merchant whose checkouts no trusted key
 * could sign, or keys of several issuers: the user is shown the one who is paid.
 */
export const findIssuers = (
  sql: Sql,
  tenant: string,
  { merchants }: Pick<OpenMandateLimits, 'merchants'>,
): Promise<string[]> =>
  Promise.all(
    merchants.map(async (merchant) => {
      const [issuer, other] = await listIssuers(sql, tenant, merchant)
      const name = `the merchant "${merchant.name.slice(0, 100)}"`
      if (issuer === undefined)
        return refuse(
          `no trusted key is of ${name}`,
          'name the merchant with id and website as its checkouts do; an admin adds its key',
        )
      if (other !== undefined)
        return refuse(
          `${name} has the names of two issuers, ${issuer} and ${other}`,
          'name the merchant with its own id and website',
        )
      return issuer
    }),
  )

/** The limits in plain words, with the issuers of `findIssuers`, who are paid. */
export const describeLimits = (
  limits: OpenMandateLimits,
  wallet: WalletAccount | null = null,
  issuers: readonly string[] = [],
): LimitLine[] => {
  const { merchants, items, currency, max_minor, budget_minor, recurrence, instrument, expires_at } = limits
  const show = (minor: number): string => `At most ${formatMoney({ currency, minor })} ${currency}`
  const { frequency, max_occurrences: most } = recurrence ?? { max_occurrences: null }
  const often = [
    ...(most === null ? [] : [`At most ${most} times`]),
    ...(frequency === undefined ? [] : [frequency === 'ON_DEMAND' ? 'at any time' : frequency]),
  ]
  return [
    ...merchants.map(({ id, name, website }, i) => ({
      name: 'Buys from',
      text: `${name} (${[...new Set([id, website])].filter(Boolean).join(', ')})${issuers[i] ? `. Who is paid: ${issuers[i]}` : ''}`,
    })),
    ...items.map(({ any_of, quantity }) => ({
      name: 'Buys',
      text: `At most ${quantity} × ${any_of.map(({ id, title }) => (title ? `${title} (${id})` : id)).join(' or ')}`,
    })),
    { name: 'Each payment', text: show(max_minor) },
    ...(budget_minor === null ? [] : [{ name: 'All payments', text: show(budget_minor) }]),
    {
      name: 'How often',
      text: often.join(', ') || (budget_minor === null ? 'Once' : 'Until all of that is spent'),
    },
    { name: 'Pays with', text: `${instrument.id} (${instrument.type})` },
    ...(wallet ? [{ name: 'Account', text: `${wallet.user_email} at ${wallet.agent}` }] : []),
    { name: 'Ends', text: new Date(expires_at * 1000).toISOString() },
  ]
}

/** What a person reads before they sign open mandates. Throws `invalid_request`, also for texts that hold more than what is read. */
export const readProposal = async (
  sql: Sql,
  tenant: string,
  request: OpenConsentRequest,
): Promise<OpenFacts> => {
  const limits =
    readOpenMandates(request) ?? refuse('these are no open mandates of Mason', 'propose the mandate again')
  return {
    limits: describeLimits(limits, request.wallet, await findIssuers(sql, tenant, limits)),
    offer_ends: new Date(limits.expires_at * 1000).toISOString(),
  }
}
