import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useRef, useState } from 'react'
import { call, createKey } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { Dialog } from '../parts/basics.tsx'
import { Problem } from '../parts/states.tsx'
import { useBusiness } from '../router.tsx'
import type { Run } from '../types.ts'

/** Submits a run; sending twice gives the same run. */
export const NewRun = ({ onClose }: { onClose(): void }): ReactNode => {
  const { t } = useTexts()
  const business_id = useBusiness()
  const navigate = useNavigate()
  const key = useRef(createKey())
  const [error, setError] = useState<Error | null>(null)
  const submit = async (fields: FormData) => {
    const body = { prompt: String(fields.get('prompt')), user_id: String(fields.get('user_id')).trim() }
    try {
      const run = await call<Run>('/v1/runs', {
        method: 'POST',
        query: { business_id },
        body,
        key: key.current,
      })
      await navigate({ to: `/${encodeURIComponent(business_id)}/runs/${run.id}` as never })
    } catch (cause) {
      setError(cause as Error)
    }
  }
  return (
    <Dialog title={t.newRun} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit(new FormData(event.currentTarget))
        }}
      >
        <label>
          {t.prompt}
          <textarea name="prompt" required rows={5} />
        </label>
        <label>
          {t.user}
          <input name="user_id" required defaultValue="operator" spellCheck={false} />
        </label>
        {error && <Problem error={error} />}
        <div className="row">
          <button type="submit" className="main">
            {t.submit}
          </button>
          <button type="button" onClick={onClose}>
            {t.close}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
