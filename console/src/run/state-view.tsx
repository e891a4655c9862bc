import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { CopyCurl, Download, JsonText } from '../parts/basics.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useBusiness, useSearch } from '../router.tsx'
import type { Json, Run } from '../types.ts'

type State = Record<string, Json>

/** The state as an action left it, field by field; what this action changed is marked. */
export const StateView = ({ run, last }: { run: Run; last: number }): ReactNode => {
  const { t } = useTexts()
  const business_id = useBusiness()
  const [search, change] = useSearch()
  const at = Math.min(Math.max(Number(search.at ?? search.action) || last, 0), last)
  const path = `/v1/sessions/${encodeURIComponent(run.session_id)}`
  const query = { business_id, action: at, inline: 'false' }
  const state = useQuery({
    queryKey: ['state', path, query],
    queryFn: ({ signal }) => call<State>(`${path}/state`, { query, signal }),
    placeholderData: keepPreviousData,
  })
  const action = useQuery({
    queryKey: ['action', `${path}/actions/${at}`, business_id],
    queryFn: ({ signal }) =>
      call<{ patch: State }>(`${path}/actions/${at}`, { query: { business_id }, signal }),
    enabled: at > 0,
  })
  const changed = new Set(Object.keys(action.data?.patch ?? {}))
  return (
    <>
      <div className="row">
        <label>
          {t.stateAfter} <b className="num">{at}</b>
          <input
            type="range"
            min={0}
            max={last}
            value={at}
            onChange={(event) => change({ at: event.target.value }, true)}
          />
        </label>
        <CopyCurl path={`${path}/state`} options={{ query }} />
        <Download name={`${run.session_id}-state-${at}`} value={state.data} />
      </div>
      {state.isPending && <Loading />}
      {state.error && <Problem error={state.error} onRetry={() => void state.refetch()} />}
      {changed.size > 0 && (
        <details open>
          <summary>{t.change}</summary>
          <JsonText value={action.data?.patch} label={t.change} />
        </details>
      )}
      {Object.entries(state.data ?? {}).map(([name, value]) => {
        const isEmpty =
          value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
        return isEmpty ? (
          <p key={name} className="quiet">
            <code>{name}</code> –
          </p>
        ) : (
          <details key={name}>
            <summary>
              <code>{name}</code> {changed.has(name) && <span className="mark">Δ</span>}
            </summary>
            <JsonText value={value} label={name} />
          </details>
        )
      })}
    </>
  )
}
