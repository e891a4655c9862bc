import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { ApiError, call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { useBusiness } from '../router.tsx'
import type { InputRequest, Json } from '../types.ts'
import { Text, Time } from './basics.tsx'
import { Problem } from './states.tsx'

/** The text as the schema wants it: a number where it wants one. */
const toAnswer = (text: string, schema: InputRequest['schema']): Json => {
  const { type } = schema
  if (type === undefined || type === 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A question with its form. A `secret` one is shown as waiting: only the user answers it. */
export const Answer = (props: {
  question: InputRequest & { run_id: string }
  mayWrite: boolean
}): ReactNode => {
  const { question, mayWrite } = props
  const { t } = useTexts()
  const client = useQueryClient()
  const business_id = useBusiness()
  const [state, setState] = useState<'open' | 'sent' | 'late' | Error>('open')
  const send = async (text: string) => {
    const body = { request_id: question.id, answer: toAnswer(text, question.schema) }
    const path = `/v1/runs/${encodeURIComponent(question.run_id)}/input`
    try {
      await call(path, { method: 'POST', query: { business_id }, body })
      setState('sent')
    } catch (error) {
      const isLate =
        error instanceof ApiError && (error.code === 'input_answered' || error.code === 'run_ended')
      setState(isLate ? 'late' : (error as Error))
    }
    await client.invalidateQueries({ queryKey: ['live', '/v1/input-requests'] })
  }
  return (
    <div>
      <p>
        <Text>{question.question}</Text>
      </p>
      <p className="quiet">
        {t.expires} <Time at={question.expires_at} />
      </p>
      {question.secret && <p role="status">{t.secretQuestion}</p>}
      {state === 'late' && <p role="alert">{t.alreadyAnswered}</p>}
      {state === 'sent' && <p role="status">{t.answered}</p>}
      {state instanceof Error && <Problem error={state} />}
      {mayWrite && !question.secret && state !== 'sent' && state !== 'late' && (
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault()
            const { submitter } = event.nativeEvent as SubmitEvent
            const option = submitter?.getAttribute('value')
            void send(option ?? String(new FormData(event.currentTarget).get('answer')))
          }}
        >
          {question.options.map((option) => (
            <button key={option} type="submit" value={option}>
              <Text>{option}</Text>
            </button>
          ))}
          {question.options.length === 0 && (
            <>
              <input name="answer" aria-label={t.yourAnswer} required />
              <button type="submit" className="main">
                {t.send}
              </button>
            </>
          )}
        </form>
      )}
    </div>
  )
}
