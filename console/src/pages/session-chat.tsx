import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { call, createKey } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { Confirm, CopyCurl, Download, Status, Text } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { live } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useBusiness, useParams } from '../router.tsx'
import { useMayDelete, useMayWrite } from '../session.tsx'
import type { Run, Session } from '../types.ts'

/** A session as a conversation, which goes on here. */
export default function SessionPage(): ReactNode {
  const { t } = useTexts()
  const business_id = useBusiness()
  const { session: id = '' } = useParams()
  const client = useQueryClient()
  const navigate = useNavigate()
  const mayWrite = useMayWrite()
  const mayDelete = useMayDelete()
  const [error, setError] = useState<Error | null>(null)
  const path = `/v1/sessions/${encodeURIComponent(id)}`
  const queryKey = ['live', path, business_id]
  const session = useQuery({
    queryKey,
    queryFn: ({ signal }) => call<Session>(path, { query: { business_id }, signal }),
    ...live,
  })
  if (session.isPending) return <Loading />
  if (session.error) return <Problem error={session.error} onRetry={() => void session.refetch()} />
  const { user_id, turns } = session.data
  const send = async (form: HTMLFormElement) => {
    const body = { prompt: String(new FormData(form).get('prompt')), user_id, session_id: id }
    try {
      setError(null)
      await call<Run>('/v1/runs', { method: 'POST', query: { business_id }, body, key: createKey() })
      form.reset()
    } catch (cause) {
      setError(cause as Error)
    }
    await client.invalidateQueries({ queryKey })
  }
  return (
    <>
      <div className="row">
        <h1>{t.chat}</h1>
        <code>{id}</code>
        <span className="grow" />
        {mayDelete && (
          <Confirm
            label={t.deleteSession}
            question={t.deleteSessionAsk}
            names={`${id} · ${user_id} · ${turns.length} ${t.runs}`}
            act={async () => {
              await call(path, { method: 'DELETE', query: { business_id } })
              await navigate({ to: `/${encodeURIComponent(business_id)}/sessions` as never })
            }}
          />
        )}
        <CopyCurl path={path} options={{ query: { business_id } }} />
        <Download name={id} value={session.data} />
      </div>
      <p className="quiet">
        {t.user} {user_id}
      </p>
      <ol className="chat">
        {turns.map((turn) => (
          <li key={turn.run_id}>
            <div className="said user">
              <Text>{turn.prompt}</Text>
            </div>
            <div className="said">
              {turn.answer === null ? <Status of={turn.status} /> : <Text>{turn.answer}</Text>}
              <div className="quiet">
                <To page={`runs/${encodeURIComponent(turn.run_id)}`}>
                  {t.turn} {turn.turn}
                </To>
              </div>
            </div>
          </li>
        ))}
      </ol>
      {error && <Problem error={error} />}
      {mayWrite && (
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault()
            void send(event.currentTarget)
          }}
        >
          <textarea name="prompt" aria-label={t.message} required rows={2} className="grow" />
          <button type="submit" className="main">
            {t.send}
          </button>
        </form>
      )}
    </>
  )
}
