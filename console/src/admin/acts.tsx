import { type ReactNode, useState } from 'react'
import { call, type Query } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { Dialog, JsonText } from '../parts/basics.tsx'
import type { Item } from '../parts/table.tsx'
import { type Document, findActs, toBody } from './document.ts'
import { SchemaForm } from './schema-form.tsx'

/** What else may be done with an item: each act with its form, and its answer. */
export const Acts = (props: {
  doc: Document
  template: string
  path: string
  item: Item
  query?: Query
  onDone(): Promise<unknown>
}): ReactNode => {
  const { doc, template, path, item, query = {}, onDone } = props
  const { t } = useTexts()
  const [name, setName] = useState<string | null>(null)
  const [answer, setAnswer] = useState<unknown>(null)
  const acts = findActs(doc, template)
  const act = acts.find((one) => one.name === name)
  const close = () => {
    setName(null)
    setAnswer(null)
  }
  const send = async (body: Item) => {
    setAnswer((await call(`${path}/${name}`, { method: 'POST', query, body })) ?? t.done)
    await onDone()
  }
  return (
    <>
      {acts.map((one) => (
        <button key={one.name} type="button" onClick={() => setName(one.name)}>
          {one.name}
        </button>
      ))}
      {act && (
        <Dialog title={act.operation.summary} onClose={close}>
          <p>
            <code>{String(item.label ?? item.name ?? item.id)}</code>
          </p>
          {answer === null ? (
            <SchemaForm
              doc={doc}
              schema={toBody(doc, act.operation) ?? {}}
              submit={act.name}
              onSubmit={send}
            />
          ) : (
            <JsonText value={answer} label={t.result} />
          )}
          <button type="button" onClick={close}>
            {t.close}
          </button>
        </Dialog>
      )}
    </>
  )
}
