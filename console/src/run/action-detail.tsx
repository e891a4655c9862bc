import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call, toUrl } from '../api.ts'
import { showMs, showNumber } from '../format.ts'
import { useTexts } from '../i18n/index.ts'
import { CopyCurl, Download, JsonText, Scroll, Status, Text, Time } from '../parts/basics.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useBusiness } from '../router.tsx'
import type { Action, Json, ModelCall, Run } from '../types.ts'

type Blob = { blob: string; bytes: number }
const isBlob = (value: Json | undefined): value is Blob & { [name: string]: Json } =>
  typeof value === 'object' && value !== null && 'blob' in value && 'bytes' in value

/** The large results that an action keeps outside of itself. */
const findBlobs = (value: Json | undefined): Blob[] => {
  if (typeof value !== 'object' || value === null) return []
  return isBlob(value) ? [value] : Object.values(value).flatMap(findBlobs)
}

const ModelCalls = ({ calls }: { calls: ModelCall[] }): ReactNode => {
  const { t } = useTexts()
  return (
    <Scroll label={t.modelCalls}>
      <table>
        <thead>
          <tr>
            <th>{t.role}</th>
            <th>{t.model}</th>
            <th>{t.vendor}</th>
            <th>{t.status}</th>
            <th className="end">{t.took}</th>
            <th className="end">{t.tokensUsed}</th>
            <th className="end">{t.cost}</th>
          </tr>
        </thead>
        <tbody>
          {calls.map((one) => (
            <tr key={`${one.at} ${one.role} ${one.model} ${one.ms}`}>
              <td>{one.role}</td>
              <td>
                <Text>{one.model}</Text>
              </td>
              <td>{one.vendor === null ? '–' : <Text>{one.vendor}</Text>}</td>
              <td>
                <Status of={one.status} /> {one.error_code}
              </td>
              <td className="end num">{showMs(one.ms)}</td>
              <td className="end num">{showNumber(one.tokens)}</td>
              <td className="end num">{one.currency === null ? '–' : `${one.cost} ${one.currency}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

/** One action with everything that is known of it, beside the list. */
export const ActionDetail = (props: { action: Action; run: Run; onClose(): void }): ReactNode => {
  const { action, run, onClose } = props
  const { t } = useTexts()
  const business_id = useBusiness()
  const path = `/v1/sessions/${encodeURIComponent(run.session_id)}/actions/${action.id}`
  const full = useQuery({
    queryKey: ['action', path, business_id],
    queryFn: ({ signal }) =>
      call<Action & { patch: Record<string, Json> }>(path, { query: { business_id }, signal }),
  })
  const calls = full.data?.model_calls ?? action.model_calls ?? []
  return (
    <aside className="detail" aria-label={`${t.details} ${action.id}`}>
      <div className="row">
        <h2>
          {action.id} · {action.node}
        </h2>
        <span className="grow" />
        <button type="button" onClick={onClose}>
          {t.close}
        </button>
      </div>
      <p>
        <Text>{action.summary}</Text>
      </p>
      <p className="quiet">
        <Time at={action.at} /> · {action.ms === null ? '–' : showMs(action.ms)} · {t.attempt}{' '}
        {action.attempt ?? '–'} · {t.worker} <code>{action.worker ?? '–'}</code>
      </p>
      {calls.length > 0 && <h3>{t.modelCalls}</h3>}
      {calls.length > 0 && <ModelCalls calls={calls} />}
      <h3>{t.result}</h3>
      <JsonText value={action.result} label={t.result} />
      {findBlobs(action.result).map(({ blob, bytes }) => (
        <p key={blob}>
          <a
            href={toUrl(`/v1/runs/${encodeURIComponent(run.id)}/blobs/${blob}`, { business_id })}
            download={blob}
          >
            {t.result}: {showNumber(bytes)} B
          </a>
        </p>
      ))}
      <h3>{t.change}</h3>
      {full.isPending && <Loading />}
      {full.error && <Problem error={full.error} onRetry={() => void full.refetch()} />}
      {full.data &&
        (Object.keys(full.data.patch).length === 0 ? (
          <p className="quiet">{t.noChange}</p>
        ) : (
          <JsonText value={full.data.patch} label={t.change} />
        ))}
      <div className="row">
        <CopyCurl path={path} options={{ query: { business_id } }} />
        <Download name={`${run.id}-${action.id}`} value={full.data ?? action} />
      </div>
    </aside>
  )
}
