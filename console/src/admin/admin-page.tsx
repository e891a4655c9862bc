import type { ReactNode } from 'react'
import { ApiError } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { NotFound } from '../pages/not-found.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useParams } from '../router.tsx'
import { findTemplate, useDocument } from './document.ts'
import { ItemPage } from './item-page.tsx'
import { ListPage } from './list-page.tsx'

/** The lists and items of /admin/v1: their pages follow from the document that the server makes of its own routes. */
export default function AdminPage(): ReactNode {
  const { t } = useTexts()
  const { _splat = '' } = useParams()
  const doc = useDocument()
  if (doc.isPending) return <Loading />
  if (doc.error)
    return doc.error instanceof ApiError && doc.error.status === 404 ? (
      <p role="alert">{t.noDocument}</p>
    ) : (
      <Problem error={doc.error} onRetry={() => void doc.refetch()} />
    )
  const path = `/admin/v1/${_splat}`
  const template = findTemplate(doc.data, path)
  const operation = template === null ? undefined : doc.data.paths[template]?.get
  // one that can be deleted or changed, but not read, has no page of its own
  if (template === null || !operation) return <NotFound />
  const isList = !template.endsWith('}') && operation.operationId.startsWith('list')
  const Page = isList ? ListPage : ItemPage
  return <Page key={path} doc={doc.data} path={path} template={template} operation={operation} />
}
