import { type ReactNode, useState } from 'react'
import { showMs, showNumber, toMs } from '../format.ts'
import { toWord, useTexts } from '../i18n/index.ts'
import { CopyCurl, Scroll, Status, Text, Time } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { More, usePages } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { type Search, useBusiness, useSearch } from '../router.tsx'
import { useMayWrite } from '../session.tsx'
import { type Run, statuses } from '../types.ts'
import { NewRun } from './new-run.tsx'

const finishReasons = [
  'answered',
  'length',
  'content_filter',
  'unknown',
  'steps',
  'tokens',
  'cost',
  'time',
  'no_progress',
]
const names = [
  'q',
  'status',
  'error',
  'node',
  'model',
  'finish_reason',
  'from',
  'to',
  'user_id',
  'session_id',
  'order',
] as const
type Name = (typeof names)[number]

const isMetadata = (name: string): boolean => name.startsWith('metadata.')
/** The fields of metadata in the address as one text: `plan=pro, team=a`. */
const showMetadata = (search: Search): string =>
  Object.entries(search)
    .filter(([name, value]) => isMetadata(name) && value)
    .map(([name, value]) => `${name.slice('metadata.'.length)}=${value}`)
    .join(', ')
/** What a field changes in the address. */
const toChange = (search: Search, name: string, text: string): Search => {
  if (name !== 'metadata') return { [name]: text.trim() }
  const cleared = Object.keys(search).filter(isMetadata)
  const pairs = text.split(',').flatMap((pair) => {
    const [field = '', ...value] = pair.trim().split('=')
    return field && value.length > 0 ? [[`metadata.${field}`, value.join('=')]] : []
  })
  return Object.fromEntries([...cleared.map((field) => [field, '']), ...pairs])
}

const Filter = (): ReactNode => {
  const { t } = useTexts()
  const [search, change] = useSearch()
  const input = (name: Name | 'metadata', label: string, type = 'text', hint?: string) => {
    const now = name === 'metadata' ? showMetadata(search) : (search[name] ?? '')
    return (
      <label>
        {label}
        <input
          key={now}
          type={type}
          name={name}
          defaultValue={now}
          placeholder={hint}
          onBlur={({ target }) => target.value !== now && change(toChange(search, name, target.value))}
          spellCheck={false}
        />
      </label>
    )
  }
  const select = (
    name: Name,
    label: string,
    options: readonly (readonly [string, string])[],
    none: string,
  ) => (
    <label>
      {label}
      <select value={search[name] ?? ''} onChange={(event) => change({ [name]: event.target.value })}>
        <option value="">{none}</option>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
  return (
    <form
      className="filter"
      onSubmit={(event) => {
        event.preventDefault()
        const fields = [...new FormData(event.currentTarget)]
        change(Object.assign({}, ...fields.map(([name, value]) => toChange(search, name, String(value)))))
      }}
    >
      {input('q', t.words)}
      {select(
        'status',
        t.status,
        statuses.map((one) => [one, toWord(t, one)] as const),
        t.any,
      )}
      {select(
        'finish_reason',
        t.finishReason,
        finishReasons.map((one) => [one, one] as const),
        t.any,
      )}
      {input('error', t.error)}
      {input('node', t.node)}
      {input('model', t.model)}
      {input('user_id', t.user)}
      {input('metadata', t.metadata, 'text', 'plan=pro')}
      {input('from', t.from, 'date')}
      {input('to', t.to, 'date')}
      {select('order', t.order, [['asc', t.oldest]], t.newest)}
      {/* Enter in a field submits */}
      <button type="submit" className="unseen" tabIndex={-1}>
        {t.search}
      </button>
    </form>
  )
}

const RunsTable = ({ runs }: { runs: Run[] }): ReactNode => {
  const { t } = useTexts()
  return (
    <Scroll label={t.runs}>
      <table>
        <thead>
          <tr>
            <th>{t.created}</th>
            <th>{t.status}</th>
            <th>{t.prompt}</th>
            <th>{t.user}</th>
            <th className="end">{t.took}</th>
            <th className="end">{t.tokensUsed}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => {
            const ms = toMs(run.started_at, run.ended_at)
            return (
              <tr key={run.id}>
                <td>
                  <Time at={run.created_at} />
                </td>
                <td>
                  <Status of={run.status} />
                  {run.error && <div className="quiet">{run.error.code}</div>}
                  {run.finish_reason && run.finish_reason !== 'answered' && (
                    <div className="quiet">{run.finish_reason}</div>
                  )}
                </td>
                <td className="wide">
                  <To page={`runs/${encodeURIComponent(run.id)}`}>
                    <Text most={160}>{run.prompt.trim() || run.id}</Text>
                  </To>
                </td>
                <td>{run.user_id}</td>
                <td className="end num">{ms === null ? '–' : showMs(ms)}</td>
                <td className="end num">{showNumber(run.usage.total_tokens)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </Scroll>
  )
}

/** All runs of the business that fit the filter in the address. */
export const RunsPage = (): ReactNode => {
  const { t } = useTexts()
  const business_id = useBusiness()
  const [search, change] = useSearch()
  const mayWrite = useMayWrite()
  const [isNew, setNew] = useState(false)
  const filter = Object.fromEntries(
    Object.entries(search).filter(
      ([name]) => (names as readonly string[]).includes(name) || isMetadata(name),
    ),
  )
  const query = { ...filter, business_id }
  const runs = usePages<Run>('/v1/runs', query, { isLive: true })
  const isFiltered = Object.keys(filter).some((name) => name !== 'order')
  return (
    <>
      <div className="row">
        <h1>{t.runs}</h1>
        <span className="grow" />
        <CopyCurl path="/v1/runs" options={{ query }} />
        {mayWrite && (
          <button type="button" className="main" onClick={() => setNew(true)}>
            {t.newRun}
          </button>
        )}
      </div>
      <Filter />
      {runs.isPending && <Loading />}
      {runs.error && <Problem error={runs.error} onRetry={() => void runs.refetch()} />}
      {runs.data && runs.items.length > 0 && <RunsTable runs={runs.items} />}
      {runs.data && runs.items.length === 0 && <p role="status">{isFiltered ? t.noMatch : t.empty}</p>}
      <div className="row">
        <More pages={runs} />
        {isFiltered && (
          <button
            type="button"
            onClick={() => change(Object.fromEntries(Object.keys(filter).map((name) => [name, ''])))}
          >
            {t.clearFilter}
          </button>
        )}
      </div>
      {isNew && <NewRun onClose={() => setNew(false)} />}
    </>
  )
}
