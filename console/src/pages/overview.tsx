import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call } from '../api.ts'
import { showNumber } from '../format.ts'
import { useTexts } from '../i18n/index.ts'
import { CopyCurl, Status } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { live } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'

type Ended = Record<'submitted' | 'completed' | 'failed' | 'cancelled', number>
type Overview = {
  from: string
  to: string
  runs: Ended
  before: Ended
  costs: { currency: string; cost: number; before: number }[]
  now: Record<string, number>
}

const path = '/admin/v1/overview'

/** What changed since yesterday, and what waits now. */
export default function OverviewPage(): ReactNode {
  const { t } = useTexts()
  const overview = useQuery({
    queryKey: ['live', path],
    queryFn: () => call<Overview>(path),
    ...live,
  })
  if (overview.isPending) return <Loading />
  if (overview.error) return <Problem error={overview.error} onRetry={() => void overview.refetch()} />
  const { runs, before, costs, now, from } = overview.data
  const day = from.slice(0, 10)
  const tile = (
    key: string,
    label: ReactNode,
    value: number,
    note?: string,
    page?: string,
    search?: Record<string, string>,
  ) => (
    <div key={key} className="tile" data-alert={page !== undefined && value > 0 ? '' : undefined}>
      <dt>
        {page ? (
          <To page={page} {...(search && { search })}>
            {label}
          </To>
        ) : (
          label
        )}
      </dt>
      <dd className="num">{showNumber(value)}</dd>
      {note !== undefined && <dd className="quiet num">{note}</dd>}
    </div>
  )
  const ended = (status: keyof Ended) => {
    const label = status === 'submitted' ? t.submitted : <Status of={status} />
    const note = `${t.before}: ${before[status]}`
    return status === 'failed'
      ? tile(status, label, runs[status], note, 'runs', { status, from: day })
      : tile(status, label, runs[status], note)
  }
  return (
    <>
      <div className="row">
        <h1>{t.overview}</h1>
        <span className="grow" />
        <CopyCurl path={path} />
      </div>
      <h2>{t.since}</h2>
      <dl className="tiles">
        {(['submitted', 'completed', 'failed', 'cancelled'] as const).map(ended)}
        {costs.map(({ currency, cost, before: earlier }) =>
          tile(currency, `${t.cost} (${currency})`, cost, `${t.before}: ${showNumber(earlier)}`),
        )}
      </dl>
      <h2>{t.now}</h2>
      <dl className="tiles">
        {tile('workers', t.workers, now.workers ?? 0)}
        {tile('queued', t.queued, now.queued ?? 0)}
        {tile('running', t.running, now.running ?? 0)}
        {tile('oldest', t.oldestReady, Math.round(now.oldest_ready_s ?? 0))}
        {tile('input', t.input_required, now.input_required ?? 0, undefined, 'inbox')}
        {tile('effects', t.unknownEffects, now.unknown_effects ?? 0, undefined, 'admin/effects', {
          status: 'unknown',
        })}
        {tile('rejected', t.rejected, now.rejected_jobs ?? 0, undefined, 'admin/rejected-jobs')}
        {tile('webhooks', t.deadWebhooks, now.dead_webhooks ?? 0, undefined, 'admin/webhooks')}
        {tile('unlearned', t.unlearned, now.unlearned ?? 0)}
      </dl>
    </>
  )
}
