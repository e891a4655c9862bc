import type { ReactNode } from 'react'
import { toWord, useTexts } from '../i18n/index.ts'
import { Answer } from '../parts/answer.tsx'
import { Status, Time } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { More, usePages } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useBusiness, useSearch } from '../router.tsx'
import { useMayWrite } from '../session.tsx'
import type { Question } from '../types.ts'

const statuses = ['open', 'answered', 'expired', 'closed']

/** The questions that runs wait for. */
export default function InboxPage(): ReactNode {
  const { t } = useTexts()
  const business_id = useBusiness()
  const mayWrite = useMayWrite()
  const [search, change] = useSearch()
  const status = statuses.includes(search.status ?? '') ? (search.status as string) : 'open'
  const questions = usePages<Question>('/v1/input-requests', { business_id, status }, { isLive: true })
  return (
    <>
      <h1>{t.inbox}</h1>
      <div className="filter">
        <label>
          {t.status}
          <select value={status} onChange={(event) => change({ status: event.target.value })}>
            {statuses.map((one) => (
              <option key={one} value={one}>
                {toWord(t, one)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {questions.isPending && <Loading />}
      {questions.error && <Problem error={questions.error} onRetry={() => void questions.refetch()} />}
      {questions.data && questions.items.length === 0 && <p role="status">{t.noQuestions}</p>}
      {questions.items.map((question) => (
        <article key={`${question.run_id} ${question.id}`} className="card" aria-label={question.id}>
          <p className="quiet">
            <Status of={question.status} /> {question.user_id} · {t.asked} <Time at={question.created_at} /> ·{' '}
            <To page={`runs/${encodeURIComponent(question.run_id)}`}>{question.run_id}</To>
          </p>
          <Answer question={question} mayWrite={mayWrite && question.status === 'open'} />
        </article>
      ))}
      <More pages={questions} />
    </>
  )
}
