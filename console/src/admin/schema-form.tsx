import { type ReactNode, useId, useState } from 'react'
import { useTexts } from '../i18n/index.ts'
import { Problem } from '../parts/states.tsx'
import type { Item } from '../parts/table.tsx'
import type { Json } from '../types.ts'
import { type Document, resolve, type Schema } from './document.ts'

type Kind = 'text' | 'secret' | 'long' | 'number' | 'boolean' | 'choice' | 'json'
type Field = {
  name: string
  kind: Kind
  schema: Schema
  choices: Json[]
  isRequired: boolean
  isNullable: boolean
}

const isSecret = (name: string): boolean => /(^|_)(secret|password|private_key|token)$/.test(name)

const toField = (doc: Document, name: string, given: Schema, isRequired: boolean): Field => {
  const schema = resolve(doc, given) ?? {}
  const others = schema.anyOf?.map((one) => resolve(doc, one) ?? {}).filter(({ type }) => type !== 'null')
  const isNullable = others !== undefined && others.length < (schema.anyOf?.length ?? 0)
  const one: Schema =
    others?.length === 1
      ? { ...others[0], ...(schema.description && { description: schema.description }) }
      : schema
  const type = others && others.length > 1 ? undefined : one.type
  const kind: Kind = one.enum
    ? 'choice'
    : type === 'boolean'
      ? 'boolean'
      : type === 'integer' || type === 'number'
        ? 'number'
        : type === 'string'
          ? isSecret(name)
            ? 'secret'
            : (one.maxLength ?? 0) > 2000
              ? 'long'
              : 'text'
          : 'json'
  return { name, kind, schema: one, choices: one.enum ?? [], isRequired, isNullable }
}

/** What a field was filled with; undefined: nothing. Throws where JSON is not JSON. */
const readField = (
  { name, kind, isNullable }: Field,
  fields: FormData,
  old: Json | undefined,
): Json | undefined => {
  if (kind === 'boolean')
    return fields.get(name) === 'true' ? true : fields.get(name) === 'false' ? false : undefined
  const text = String(fields.get(name) ?? '')
  // emptied: removed, where the field knows nothing
  if (text.trim() === '') return isNullable && old !== undefined && old !== null ? null : undefined
  if (kind === 'number') return Number(text)
  return kind === 'json' ? (JSON.parse(text) as Json) : text
}

const toText = (value: Json | undefined, kind: Kind): string =>
  value === undefined || value === null
    ? ''
    : kind === 'json'
      ? JSON.stringify(value, null, 2)
      : String(value)

const Input = ({ field, value }: { field: Field; value: Json | undefined }): ReactNode => {
  const { t } = useTexts()
  const id = useId()
  const { name, kind, schema, choices, isRequired } = field
  const common = {
    name,
    required: isRequired,
    'aria-describedby': schema.description ? `${id}-help` : undefined,
  }
  const text = toText(value ?? schema.default, kind)
  const none = isRequired ? null : <option value="">–</option>
  return (
    <div className="field">
      <label htmlFor={id}>
        <code>{name}</code> {isRequired && <span className="quiet">{t.required}</span>}
        {kind === 'json' && <span className="quiet"> {t.jsonField}</span>}
      </label>
      {kind === 'choice' && (
        <select id={id} {...common} defaultValue={text}>
          {none}
          {choices.map((one) => (
            <option key={String(one)}>{String(one)}</option>
          ))}
        </select>
      )}
      {kind === 'boolean' && (
        <select id={id} {...common} defaultValue={text}>
          {none}
          <option value="true">{t.yes}</option>
          <option value="false">{t.no}</option>
        </select>
      )}
      {(kind === 'json' || kind === 'long') && (
        <textarea
          id={id}
          {...common}
          defaultValue={text}
          rows={text.length > 80 ? 8 : 3}
          spellCheck={false}
        />
      )}
      {kind === 'number' && <input id={id} {...common} type="number" step="any" defaultValue={text} />}
      {kind === 'text' && <input id={id} {...common} defaultValue={text} spellCheck={false} />}
      {kind === 'secret' && <input id={id} {...common} type="password" autoComplete="off" />}
      {schema.description && (
        <p id={`${id}-help`} className="help">
          {schema.description}
        </p>
      )}
    </div>
  )
}

/** A form for a body of the API, made of its schema. With `old` only what was changed is sent. */
export const SchemaForm = (props: {
  doc: Document
  schema: Schema
  old?: Item
  start?: Item
  submit: string
  onSubmit(body: Item): Promise<unknown>
}): ReactNode => {
  const { doc, schema, old, start = {}, submit, onSubmit } = props
  const { t } = useTexts()
  const [error, setError] = useState<Error | null>(null)
  const [isBusy, setBusy] = useState(false)
  const fields = Object.entries(schema.properties ?? {}).map(([name, one]) =>
    toField(doc, name, one, !old && (schema.required?.includes(name) ?? false)),
  )
  const send = async (form: FormData) => {
    setError(null)
    const body: Item = {}
    for (const field of fields)
      try {
        const value = readField(field, form, old?.[field.name])
        const isSame = old && JSON.stringify(value) === JSON.stringify(old[field.name])
        if (value !== undefined && !isSame) body[field.name] = value
      } catch (cause) {
        return setError(new Error(`${t.invalidJson} ${field.name}: ${(cause as Error).message}`))
      }
    setBusy(true)
    await onSubmit(body).catch((cause: Error) => setError(cause))
    setBusy(false)
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void send(new FormData(event.currentTarget))
      }}
    >
      {fields.map((field) => (
        <Input key={field.name} field={field} value={old?.[field.name] ?? start[field.name]} />
      ))}
      {error && <Problem error={error} />}
      <button type="submit" className="main" disabled={isBusy}>
        {submit}
      </button>
    </form>
  )
}
