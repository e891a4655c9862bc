import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { AddressField, AddressForm } from '../parts/address-form.tsx'
import { CopyCurl, Dialog, Download, JsonText } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { More, usePages } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { type Item, ItemsTable } from '../parts/table.tsx'
import { useBusiness, useSearch } from '../router.tsx'
import { Acts } from './acts.tsx'
import { type Document, findActs, type Operation, toBody, toColumns, toParameters } from './document.ts'
import { SchemaForm } from './schema-form.tsx'

export type PageProps = { doc: Document; path: string; template: string; operation: Operation }

/** More columns than this are read on the page of the item. */
const mostColumns = 8
/** What says which one it is comes first. */
const order = ['name', 'label', 'alias', 'title', 'id', 'status']

const sortColumns = (names: string[]): string[] => {
  const rank = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length)
  return [...names].sort((a, b) => rank(a) - rank(b)).slice(0, mostColumns)
}

/** The filters that a list has, as fields. */
const Filters = ({ names }: { names: string[] }): ReactNode => {
  const { t } = useTexts()
  if (names.length === 0) return null
  return (
    <AddressForm>
      {names.map((name) => (
        <AddressField key={name} name={name} label={<code>{name}</code>} spellCheck={false} />
      ))}
      <button type="submit">{t.submit}</button>
    </AddressForm>
  )
}

/** A list of the admin API, with what may be added to it. */
export const ListPage = ({ doc, path, template, operation }: PageProps): ReactNode => {
  const { t } = useTexts()
  const business = useBusiness()
  const client = useQueryClient()
  const [search] = useSearch()
  const [isAdding, setAdding] = useState(false)
  const [created, setCreated] = useState<Item | null>(null)
  const parameters = toParameters(doc, operation).filter((one) => one.in === 'query')
  const filters = parameters.map(({ name }) => name).filter((name) => name !== 'limit' && name !== 'cursor')
  const query = Object.fromEntries(filters.map((name) => [name, search[name]]))
  // a list of one business is that of the address
  if (parameters.some(({ name, required }) => name === 'business_id' && required))
    query.business_id ??= business
  const list = usePages<Item>(path, query)
  const body = toBody(doc, doc.paths[template]?.post)
  const page = path.replace('/admin/v1/', 'admin/')
  const item = `${template}/{id}`
  const hasPage = Boolean(doc.paths[item]?.get)
  const columns = sortColumns(toColumns(doc, operation))
  const refresh = () => client.invalidateQueries({ queryKey: ['list', path] })
  const add = async (fields: Item) => {
    const answer = await call<Item>(path, { method: 'POST', body: fields })
    setAdding(false)
    // what is sent only once is in no list
    if (Object.keys(answer).some((name) => !toColumns(doc, operation).includes(name))) setCreated(answer)
    await refresh()
  }
  const isUsed = (name: string) => list.items.some((one) => one[name] !== undefined)
  return (
    <>
      <div className="row">
        <h1>{operation.summary.replace(/^Lists (the )?/, '').replace(/,.*/, '')}</h1>
        <span className="grow" />
        <CopyCurl path={path} options={{ query }} />
        <Download name={template.split('/').at(-1) ?? 'list'} value={list.items} />
        {body && (
          <button type="button" className="main" onClick={() => setAdding(true)}>
            {t.add}
          </button>
        )}
      </div>
      <Filters names={filters} />
      {list.isPending && <Loading />}
      {list.error && <Problem error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && list.items.length === 0 && <p role="status">{t.empty}</p>}
      {list.items.length > 0 && (
        <ItemsTable
          label={operation.summary}
          items={list.items}
          columns={columns.filter(isUsed)}
          {...(hasPage && {
            link: (one: Item, content: ReactNode) => (
              <To
                page={`${page}/${encodeURIComponent(String(one.id))}`}
                {...(typeof one.business_id === 'string' && { search: { business_id: one.business_id } })}
              >
                {content}
              </To>
            ),
          })}
          {...(findActs(doc, item).length > 0 && {
            acts: (one: Item) => (
              <Acts
                doc={doc}
                template={item}
                path={`${path}/${encodeURIComponent(String(one.id))}`}
                item={one}
                onDone={refresh}
              />
            ),
          })}
        />
      )}
      <More pages={list} />
      {isAdding && body && (
        <Dialog title={t.add} onClose={() => setAdding(false)}>
          <SchemaForm
            doc={doc}
            schema={body}
            start={{ business_id: business }}
            submit={t.add}
            onSubmit={add}
          />
          <button type="button" onClick={() => setAdding(false)}>
            {t.close}
          </button>
        </Dialog>
      )}
      {created && (
        <Dialog title={t.done} onClose={() => setCreated(null)}>
          <p role="status">{t.shownOnce}</p>
          <JsonText value={created} label={t.result} />
          <button type="button" onClick={() => setCreated(null)}>
            {t.close}
          </button>
        </Dialog>
      )}
    </>
  )
}
