import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { AddressField, AddressForm } from '../parts/address-form.tsx'
import { Confirm, CopyCurl } from '../parts/basics.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { type Item, ItemsTable } from '../parts/table.tsx'
import { useBusiness, useSearch } from '../router.tsx'
import { useMayDelete } from '../session.tsx'

/** A file that runs name, by its id: the API has no list of them. */
export default function FilesPage(): ReactNode {
  const { t } = useTexts()
  const business_id = useBusiness()
  const mayDelete = useMayDelete()
  const [{ id = '' }, change] = useSearch()
  const path = `/v1/files/${encodeURIComponent(id)}`
  const options = { query: { business_id } }
  const file = useQuery({
    queryKey: ['file', path, business_id],
    queryFn: ({ signal }) => call<Item>(path, { ...options, signal }),
    enabled: id !== '',
    // one that was deleted is not shown again
    gcTime: 0,
  })
  return (
    <>
      <h1>{t.files}</h1>
      <AddressForm>
        <AddressField name="id" label="id" spellCheck={false} />
        <button type="submit">{t.submit}</button>
      </AddressForm>
      {id === '' && <p role="status">{t.pickFile}</p>}
      {id !== '' && file.isPending && <Loading />}
      {file.error && <Problem error={file.error} onRetry={() => void file.refetch()} />}
      {file.data && (
        <>
          <ItemsTable label={t.files} items={[file.data]} columns={Object.keys(file.data)} />
          <div className="row">
            <CopyCurl path={path} options={options} />
            {mayDelete && (
              <Confirm
                label={t.remove}
                question={t.deleteAsk}
                names={`${file.data.name} · ${id}`}
                act={async () => {
                  await call(path, { method: 'DELETE', ...options })
                  change({ id: '' })
                }}
              />
            )}
          </div>
        </>
      )}
    </>
  )
}
