import { useQueries } from '@tanstack/react-query'
import { type ReactNode, useMemo } from 'react'
import { call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { CopyCurl, JsonText } from '../parts/basics.tsx'
import { Problem } from '../parts/states.tsx'
import { useBusiness } from '../router.tsx'
import type { Action, Json, Run } from '../types.ts'

/** The payments that the run names: in its wait for a consent and in the results of its actions. */
const findIds = (run: Run, actions: readonly Action[]): string[] => {
  const ids = new Set(run.consent_request ? [run.consent_request.payment_id] : [])
  for (const { result } of actions)
    for (const [id] of JSON.stringify(result).matchAll(/\bpay_[0-9a-f]{32}\b/g)) ids.add(id)
  return [...ids]
}

/** Each payment of the run with its trail, as the API has it. */
export const Payments = ({ run, actions }: { run: Run; actions: Action[] }): ReactNode => {
  const { t } = useTexts()
  const business_id = useBusiness()
  const ids = useMemo(() => findIds(run, actions), [run, actions])
  const payments = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['payment', id, business_id],
      queryFn: () => call<Json>(`/v1/payments/${id}`, { query: { business_id } }),
    })),
  })
  return (
    <>
      {run.consent_request && <p className="notice">{t.consentWaits}</p>}
      {ids.length === 0 && <p role="status">{t.noPayments}</p>}
      {ids.map((id, at) => (
        <section key={id} className="card">
          <h3>
            <code>{id}</code>
          </h3>
          {payments[at]?.error && <Problem error={payments[at].error} />}
          {payments[at]?.data !== undefined && <JsonText value={payments[at].data} label={id} />}
          <CopyCurl path={`/v1/payments/${id}`} options={{ query: { business_id } }} />
        </section>
      ))}
    </>
  )
}
