import type { ReactNode } from 'react'
import { useTexts } from '../i18n/index.ts'
import { AddressField, AddressForm } from '../parts/address-form.tsx'
import { Scroll, Status, Text, Time } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { More, usePages } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useBusiness, useSearch } from '../router.tsx'
import type { Session } from '../types.ts'

export default function SessionsPage(): ReactNode {
  const { t } = useTexts()
  const business_id = useBusiness()
  const [search] = useSearch()
  const sessions = usePages<Session>(
    '/v1/sessions',
    { business_id, user_id: search.user_id },
    { isLive: true },
  )
  return (
    <>
      <h1>{t.sessions}</h1>
      <AddressForm>
        <AddressField name="user_id" label={t.user} spellCheck={false} />
      </AddressForm>
      {sessions.isPending && <Loading />}
      {sessions.error && <Problem error={sessions.error} onRetry={() => void sessions.refetch()} />}
      {sessions.data && sessions.items.length === 0 && <p role="status">{t.empty}</p>}
      {sessions.items.length > 0 && (
        <Scroll label={t.sessions}>
          <table>
            <thead>
              <tr>
                <th>{t.created}</th>
                <th>{t.session}</th>
                <th>{t.user}</th>
                <th className="end">{t.turn}</th>
                <th>{t.status}</th>
              </tr>
            </thead>
            <tbody>
              {sessions.items.map((session) => {
                const last = session.turns.at(-1)
                return (
                  <tr key={session.id}>
                    <td>
                      <Time at={session.created_at} />
                    </td>
                    <td className="wide">
                      <To page={`sessions/${encodeURIComponent(session.id)}`}>
                        <Text most={120}>{session.turns[0]?.prompt.trim() || session.id}</Text>
                      </To>
                    </td>
                    <td>{session.user_id}</td>
                    <td className="end num">{last?.turn ?? 0}</td>
                    <td>{last && <Status of={last.status} />}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </Scroll>
      )}
      <More pages={sessions} />
    </>
  )
}
