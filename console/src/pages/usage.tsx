import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense } from 'react'
import { call, type Page, type Query } from '../api.ts'
import { showNumber } from '../format.ts'
import { useTexts } from '../i18n/index.ts'
import { CopyCurl, Download } from '../parts/basics.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { type Item, ItemsTable } from '../parts/table.tsx'
import { useBusiness, useSearch } from '../router.tsx'

const Chart = lazy(() => import('../parts/chart.tsx'))

const dimensions = ['business', 'user', 'model', 'vendor', 'key', 'role', 'tool']
const path = '/admin/v1/usage'
const daysBack = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

const useReport = (query: Query) =>
  useQuery({ queryKey: ['usage', query], queryFn: () => call<Page<Item>>(path, { query }) })

/** Tokens and cost: over time, and by whatever is asked for. */
export default function UsagePage(): ReactNode {
  const { t } = useTexts()
  const business_id = useBusiness()
  const [search, change] = useSearch()
  const by = dimensions.includes(search.by ?? '') ? (search.by as string) : 'model'
  const span = { from: search.from || daysBack(29), to: search.to }
  // who costs what is asked of all businesses
  const scope = by === 'business' ? span : { ...span, business_id }
  const query = { ...scope, group_by: by, limit: 200 }
  const days = useReport({ ...query, group_by: 'day' })
  const report = useReport(query)
  const items = report.data?.data ?? []
  const error = report.error ?? days.error
  return (
    <>
      <div className="row">
        <h1>{t.usage}</h1>
        <span className="grow" />
        <CopyCurl path={path} options={{ query }} />
        <Download name="usage" value={items} />
      </div>
      <div className="filter">
        <label>
          {t.groupBy}
          <select value={by} onChange={(event) => change({ by: event.target.value })}>
            {dimensions.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          {t.from}
          <input type="date" value={span.from} onChange={(event) => change({ from: event.target.value })} />
        </label>
        <label>
          {t.to}
          <input type="date" value={span.to ?? ''} onChange={(event) => change({ to: event.target.value })} />
        </label>
      </div>
      {report.isPending && <Loading />}
      {error && <Problem error={error} onRetry={() => void report.refetch()} />}
      {days.data && days.data.data.length > 0 && (
        <section aria-label={t.overTime}>
          <h2>{t.overTime}</h2>
          <Suspense fallback={<Loading />}>
            <Chart days={days.data.data} labels={{ tokens: t.tokensUsed, cost: t.cost }} />
          </Suspense>
        </section>
      )}
      {report.data && items.length === 0 && <p role="status">{t.empty}</p>}
      {items.length > 0 && (
        <ItemsTable
          label={t.usage}
          items={items.map((item) => ({
            ...item,
            total_tokens: showNumber(Number(item.total_tokens)),
            cost: `${showNumber(Number(item.cost))} ${item.currency ?? ''}`,
          }))}
          columns={[
            by === 'business' || by === 'user' ? `${by}_id` : by,
            'requests',
            'prompt_tokens',
            'completion_tokens',
            'cached_tokens',
            'total_tokens',
            'cost',
          ]}
        />
      )}
    </>
  )
}
