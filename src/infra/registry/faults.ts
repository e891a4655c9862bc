import { MasonError } from '../../state/errors.ts'
import type { Fault } from '../../state/registry/common.ts'

/** Something that needs the thing that is to be removed. */
export type User = { kind: string; id: string; name: string }

export const invalid = (errors: readonly Fault[]): MasonError => {
  const [first] = errors
  const message =
    errors.length === 1 ? `${first?.pointer}: ${first?.detail}` : `the request has ${errors.length} faults`
  return new MasonError('invalid_request', message, { detail: { errors } })
}

export const notFound = (name: string, id: string): MasonError =>
  new MasonError('not_found', `there is no ${name} "${id}"`)

const shown = 10

export const inUse = (name: string, id: string, users: readonly User[]): MasonError => {
  const list = users.slice(0, shown).map((user) => `${user.kind} "${user.name}" (${user.id})`)
  const more = users.length > shown ? [`${users.length - shown} more`] : []
  return new MasonError('in_use', `${name} "${id}" is used by ${[...list, ...more].join(', ')}`, {
    remedy: 'change or delete these first; a request under way ends by itself',
    detail: { users },
  })
}

/** A violated unique constraint as `already_exists`, naming the field; null for any other error. */
export const takenName = (error: unknown): MasonError | null => {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown }
  if (code !== '23505' || typeof constraint !== 'string') return null
  const field = /_(name|label|role|category)_key$/.exec(constraint)?.[1]
  if (field === undefined) return null
  return new MasonError('already_exists', `there is one with this ${field} already`, {
    remedy: `choose another ${field}, or change the one there is with PATCH`,
    detail: { errors: [{ pointer: `/${field}`, detail: 'is taken' }] },
  })
}
