import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useRef, useState } from 'react'
import { call, createKey } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { Confirm, Dialog } from '../parts/basics.tsx'
import { Problem } from '../parts/states.tsx'
import { useBusiness } from '../router.tsx'
import { useMayWrite } from '../session.tsx'
import type { Run } from '../types.ts'
import { hasEnded } from './use-live-run.ts'

/** What may be done with a run; nothing for a token that only reads. */
export const RunActs = ({ run }: { run: Run }): ReactNode => {
  const { t } = useTexts()
  const business_id = useBusiness()
  const navigate = useNavigate()
  const mayWrite = useMayWrite()
  const key = useRef(createKey())
  const [isAgain, setAgain] = useState(false)
  if (!mayWrite) return null
  const path = `/v1/runs/${encodeURIComponent(run.id)}`
  const write = (name: string, body = {}) =>
    call<Run>(`${path}/${name}`, { method: 'POST', query: { business_id }, body, key: key.current })
  const open = (next: Run) => navigate({ to: `/${encodeURIComponent(business_id)}/runs/${next.id}` as never })
  return (
    <>
      {!hasEnded(run) && (
        <Confirm
          label={t.cancel}
          question={t.cancelAsk}
          names={`${run.id} · ${run.user_id}`}
          act={() => write('cancel')}
        />
      )}
      {run.status === 'failed' && (
        <button type="button" onClick={() => void write('retry').then(open)}>
          {t.retry}
        </button>
      )}
      {hasEnded(run) && (
        <button type="button" onClick={() => setAgain(true)}>
          {t.rerun}
        </button>
      )}
      {isAgain && (
        <Rerun run={run} onClose={() => setAgain(false)} send={(body) => write('rerun', body).then(open)} />
      )}
    </>
  )
}

const Rerun = (props: { run: Run; onClose(): void; send(body: object): Promise<unknown> }): ReactNode => {
  const { t } = useTexts()
  const [error, setError] = useState<Error | null>(null)
  const submit = (fields: FormData) => {
    const text = (name: string) => String(fields.get(name) ?? '').trim()
    const model = text('model')
    const prompt = text('prompt')
    props
      .send({
        ...(prompt && prompt !== props.run.prompt.trim() && { prompt }),
        ...(model && { models: { planner: model, reflection: model, output: model } }),
        ...(text('from_action') && { from_action: Number(text('from_action')) }),
        ...(fields.has('learn') && { learn: true }),
        ...(fields.has('repeat_effects') && { repeat_effects: true }),
      })
      .catch((cause: Error) => setError(cause))
  }
  return (
    <Dialog title={t.rerun} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          submit(new FormData(event.currentTarget))
        }}
      >
        <p className="help">{t.rerunHelp}</p>
        <label>
          {t.model}
          <input name="model" spellCheck={false} />
        </label>
        <label>
          {t.prompt}
          <textarea name="prompt" rows={4} defaultValue={props.run.prompt} />
        </label>
        <label>
          {t.afterAction}
          <input name="from_action" type="number" min={1} />
        </label>
        <label className="check">
          <input type="checkbox" name="learn" /> {t.learn}
        </label>
        <label className="check">
          <input type="checkbox" name="repeat_effects" /> {t.repeatEffects}
        </label>
        {error && <Problem error={error} />}
        <div className="row">
          <button type="submit" className="main">
            {t.rerun}
          </button>
          <button type="button" onClick={props.onClose}>
            {t.close}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
