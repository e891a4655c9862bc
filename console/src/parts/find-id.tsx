import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { call, type Page } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { useBusiness } from '../router.tsx'
import type { Run } from '../types.ts'

const isThere = (path: string, business_id: string): Promise<boolean> =>
  call(path, { query: { business_id } }).then(
    () => true,
    () => false,
  )

/** The page of the run, session, file, key or user that has this id; null when nothing has it. */
const findPage = async (
  id: string,
  business_id: string,
): Promise<{ page: string; search?: object } | null> => {
  const path = encodeURIComponent(id)
  if (await isThere(`/v1/runs/${path}`, business_id)) return { page: `runs/${path}` }
  if (await isThere(`/v1/sessions/${path}`, business_id)) return { page: `sessions/${path}` }
  if (await isThere(`/v1/files/${path}`, business_id)) return { page: 'files', search: { id } }
  for (const name of ['idempotency_key', 'user_id'] as const) {
    const query = { business_id, [name]: id, limit: 1 }
    const found = await call<Page<Run>>('/v1/runs', { query }).catch(() => null)
    const [run] = found?.data ?? []
    if (run)
      return name === 'user_id' ? { page: 'runs', search: { user_id: id } } : { page: `runs/${run.id}` }
  }
  return null
}

/** One box that finds any id. */
export const FindId = (): ReactNode => {
  const { t } = useTexts()
  const business = useBusiness()
  const navigate = useNavigate()
  const [message, setMessage] = useState('')
  const find = async (id: string) => {
    setMessage(t.loading)
    const found = await findPage(id, business)
    setMessage(found ? '' : t.foundNothing)
    const to = `/${encodeURIComponent(business)}/${found?.page}` as never
    if (found) await navigate({ to, search: (found.search ?? {}) as never })
  }
  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const id = String(new FormData(event.currentTarget).get('id')).trim()
          if (id) void find(id)
        }}
      >
        <input name="id" type="search" aria-label={t.search} placeholder={t.search} title={t.searchHelp} />
        <span role="status" className="quiet">
          {message}
        </span>
      </form>
    </search>
  )
}
