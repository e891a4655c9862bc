import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { Confirm, CopyCurl, Dialog, Download, JsonText, Value } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import type { Item } from '../parts/table.tsx'
import { useBusiness, useSearch } from '../router.tsx'
import { Acts } from './acts.tsx'
import { findChildren, toBody, toParameters } from './document.ts'
import type { PageProps } from './list-page.tsx'
import { SchemaForm } from './schema-form.tsx'

/** One item of the admin API: its fields, its form, what else may be done with it, and the lists below it. */
export const ItemPage = ({ doc, path, template, operation }: PageProps): ReactNode => {
  const { t } = useTexts()
  const business = useBusiness()
  const client = useQueryClient()
  const navigate = useNavigate()
  const [search] = useSearch()
  const [isEditing, setEditing] = useState(false)
  const names = toParameters(doc, operation).filter((one) => one.in === 'query')
  const query = names.some(({ name }) => name === 'business_id')
    ? { business_id: search.business_id ?? business }
    : {}
  const queryKey = ['item', path, query]
  const item = useQuery({ queryKey, queryFn: ({ signal }) => call<Item>(path, { query, signal }) })
  if (item.isPending) return <Loading />
  if (item.error) return <Problem error={item.error} onRetry={() => void item.refetch()} />
  const { patch, delete: remove } = doc.paths[template] ?? {}
  const body = toBody(doc, patch)
  const page = path.replace('/admin/v1/', 'admin/')
  const list = page.split('/').slice(0, -1).join('/')
  const title = String(item.data.label ?? item.data.name ?? item.data.alias ?? item.data.id ?? path)
  const refresh = () => client.invalidateQueries({ queryKey })
  return (
    <>
      <p>
        {page
          .split('/')
          .slice(1, -1)
          .map((part, at, parts) => (
            <span key={part}>
              <To page={['admin', ...parts.slice(0, at + 1)].join('/')}>{decodeURIComponent(part)}</To> /{' '}
            </span>
          ))}
      </p>
      <div className="row">
        <h1 className="cut">
          <bdi>{title}</bdi>
        </h1>
        <span className="grow" />
        {body && (
          <button type="button" onClick={() => setEditing(true)}>
            {t.edit}
          </button>
        )}
        <Acts doc={doc} template={template} path={path} item={item.data} query={query} onDone={refresh} />
        {remove && (
          <Confirm
            label={t.remove}
            question={t.deleteAsk}
            names={`${title} · ${path}`}
            act={async () => {
              await call(path, { method: 'DELETE', query })
              client.removeQueries({ queryKey: ['list'] })
              await navigate({ to: `/${encodeURIComponent(business)}/${list}` as never })
            }}
          />
        )}
        <CopyCurl path={path} options={{ query }} />
        <Download name={String(item.data.id ?? 'item')} value={item.data} />
      </div>
      <dl className="fields">
        {Object.entries(item.data).map(([name, value]) => (
          <div key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd>
              {typeof value === 'object' && value !== null && Object.keys(value).length > 0 ? (
                <JsonText value={value} label={name} />
              ) : (
                <Value of={typeof value === 'object' ? null : value} name={name} />
              )}
            </dd>
          </div>
        ))}
      </dl>
      <ul className="row">
        {findChildren(doc, template).map((child) => (
          <li key={child}>
            <To page={`${page}/${child}`}>{child} →</To>
          </li>
        ))}
      </ul>
      {isEditing && body && (
        <Dialog title={`${t.edit}: ${title}`} onClose={() => setEditing(false)}>
          <SchemaForm
            doc={doc}
            schema={body}
            old={item.data}
            submit={t.save}
            onSubmit={async (change) => {
              client.setQueryData(queryKey, await call(path, { method: 'PATCH', query, body: change }))
              client.removeQueries({ queryKey: ['list'] })
              setEditing(false)
            }}
          />
          <button type="button" onClick={() => setEditing(false)}>
            {t.close}
          </button>
        </Dialog>
      )}
    </>
  )
}
