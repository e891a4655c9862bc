import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { AddressField, AddressForm } from '../parts/address-form.tsx'
import { Confirm } from '../parts/basics.tsx'
import { More, usePages } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { ItemsTable } from '../parts/table.tsx'
import { useBusiness, useSearch } from '../router.tsx'
import { useMayDelete } from '../session.tsx'
import type { Json } from '../types.ts'

const columns = ['kind', 'content', 'origin', 'trusted', 'strength', 'uses', 'created_at']

/** What is remembered of a user. */
export default function MemoryPage(): ReactNode {
  const { t } = useTexts()
  const business_id = useBusiness()
  const mayDelete = useMayDelete()
  const client = useQueryClient()
  const [{ user_id = '', query }] = useSearch()
  const memories = usePages<Record<string, Json>>(
    '/v1/memories',
    { business_id, user_id, query },
    { enabled: user_id !== '' },
  )
  const remove = async (id: string) => {
    await call(`/v1/memories/${encodeURIComponent(id)}`, { method: 'DELETE', query: { business_id } })
    await client.invalidateQueries({ queryKey: ['list', '/v1/memories'] })
  }
  return (
    <>
      <h1>{t.memory}</h1>
      <AddressForm>
        <AddressField name="user_id" label={t.user} spellCheck={false} />
        <AddressField name="query" label={t.search} />
        <button type="submit">{t.submit}</button>
      </AddressForm>
      {user_id === '' && <p role="status">{t.pickUser}</p>}
      {user_id !== '' && memories.isPending && <Loading />}
      {memories.error && <Problem error={memories.error} onRetry={() => void memories.refetch()} />}
      {memories.data && memories.items.length === 0 && <p role="status">{t.empty}</p>}
      {memories.items.length > 0 && (
        <ItemsTable
          label={t.memory}
          items={memories.items}
          columns={columns}
          acts={(item) =>
            mayDelete && (
              <Confirm
                label={t.remove}
                question={t.deleteAsk}
                names={`${item.id}: ${String(item.content).slice(0, 80)}`}
                act={() => remove(String(item.id))}
              />
            )
          }
        />
      )}
      <More pages={memories} />
    </>
  )
}
