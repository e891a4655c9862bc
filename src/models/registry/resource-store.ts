import { randomBytes } from 'node:crypto'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { readCursor, toPage } from '../../infra/database/pagination.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { Page } from '../../state/run-view.ts'
/** Selects rows by columns: those of one vendor, of one key. */
export type ResourceScope = Readonly<Record<string, string | undefined>>

/** The operations on one kind of resource that admins manage. Null or false: there is no such resource. */
export type ResourceStore<Input, Change, View> = {
  list(scope: ResourceScope, page: { limit: number; cursor?: string }): Promise<Page<View>>
  /** Throws `invalid_request` (detail.errors), `already_exists`, or `not_found` when its parent does not exist. */
  create(scope: ResourceScope, input: Input): Promise<View>
  get(scope: ResourceScope, id: string): Promise<View | null>
  /** Absent fields stay as they are. Also throws `forbidden` for what Mason manages itself. */
  change(scope: ResourceScope, id: string, change: Change): Promise<View | null>
  /** Throws `in_use` (detail.users) while another resource needs it. */
  remove(scope: ResourceScope, id: string): Promise<boolean>
}

/** The columns of every resource; `at` is created_at as text, for cursors. */
export type ResourceRow = { id: string; created_at: Date; updated_at: Date; at: string }

/** The resource that is written: its id, its scope, and the row before (null for a new one). */
export type ResourceTarget<Row> = { id: string; scope: ResourceScope; before: Row | null }

/** One kind of resource: its table, its views and its rules. */
export type ResourceKind<Row extends ResourceRow, Input, Change, View> = {
  /** The name in messages. */
  name: string
  prefix: string
  table: string
  idColumn: string
  /** The selected columns beside id and times; the table is `t`. */
  columns: string
  joins?: string
  /** Columns that filter lists. */
  scopedBy: readonly string[]
  /** The table and column of the resource that it belongs to. */
  parent?: { name: string; table: string; column: string }
  /** The row as the body of a request. */
  toInput(row: Row): Input
  /** The view without id and times; the body when absent. */
  toView?(row: Row): Omit<View, 'id' | 'created_at' | 'updated_at'>
  /** Replaces the fields of the change when absent. */
  merge?(before: Input, change: Change): Input
  /** Conflicts with the rest of the registry. */
  findErrors?(sql: Sql, input: Input, target: ResourceTarget<Row>): Promise<FieldError[]>
  toValues(input: Input, target: ResourceTarget<Row>): Record<string, unknown>
  /** A query of the resources that need it: `kind`, `id` and `name`, by the column `by` of the row. */
  dependents?: { by: 'id' | 'name'; query: string }
  /** Throws when no admin may change or remove it. */
  guard?(row: Row, change: Change | 'remove'): void
  /** Deletes the rows that belong to it. */
  removeDependents?(sql: Sql, row: Row): Promise<void>
}

/** `changed` is called after every change, so that it takes effect here at once and in other processes soon. */
export type ResourceStoreContext = { database: Database; changed(): Promise<void> }

/** Runs changes of admins one after the other, so that checks still hold when the row is written. Throws `already_exists`. */
export const changeRegistry = async <T>(
  { database, changed }: ResourceStoreContext,
  work: (sql: Sql) => Promise<T>,
): Promise<T> => {
  const result = await database
    .transaction(async (sql) => {
      await sql.query("SELECT pg_advisory_xact_lock(hashtext('mason.registry'))")
      return work(sql)
    })
    .catch((error: unknown) => {
      throw toNameTakenError(error) ?? error
    })
  await changed()
  return result
}

/** The operations on one kind of resource, over its table. */
export const createResourceStore = <Row extends ResourceRow, Input, Change extends object, View>(
  context: ResourceStoreContext,
  kind: ResourceKind<Row, Input, Change, View>,
): ResourceStore<Input, Change, View> => {
  const { database } = context
  const { table, idColumn, scopedBy, toInput } = kind
  const toView = (row: Row): View =>
    ({
      ...(kind.toView ?? toInput)(row),
      id: row.id,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
    }) as View
  const merge = kind.merge ?? ((before: Input, change: Change): Input => ({ ...before, ...change }))
  const select = `SELECT t.${idColumn} AS id, t.created_at, t.updated_at, t.created_at::text AS at, ${kind.columns}
    FROM ${table} t ${kind.joins ?? ''}`
  const inScope = scopedBy
    .map((column, index) => `AND ($${index + 2}::text IS NULL OR t.${column} = $${index + 2})`)
    .join(' ')
  const scopeValues = (scope: ResourceScope) => scopedBy.map((column) => scope[column] ?? null)

  const find = (sql: Sql, scope: ResourceScope, id: string, lock = ''): Promise<Row | null> =>
    queryOne<Row>(sql, `${select} WHERE t.${idColumn} = $1 ${inScope} ${lock}`, [id, ...scopeValues(scope)])

  const checkParent = async (sql: Sql, scope: ResourceScope, lock = ''): Promise<void> => {
    if (!kind.parent) return
    const { name, table: parents, column } = kind.parent
    const id = scope[column] ?? ''
    if (!(await queryOne(sql, `SELECT 1 AS there FROM ${parents} WHERE ${column} = $1 ${lock}`, [id])))
      throw createResourceNotFoundError(name, id)
  }
  const checkUnused = async (sql: Sql, row: Row, id: string): Promise<void> => {
    if (!kind.dependents) return
    const { by, query } = kind.dependents
    const { rows } = await sql.query<ResourceDependent>(query, [by === 'id' ? id : readName(row)])
    if (rows.length > 0) throw createInUseError(kind.name, id, rows)
  }
  const check = async (
    sql: Sql,
    input: Input,
    target: ResourceTarget<Row>,
  ): Promise<Record<string, unknown>> => {
    const { before, id } = target
    // others name it
    if (before && kind.dependents?.by === 'name' && readName(before) !== readName(input))
      await checkUnused(sql, before, id)
    const errors = (await kind.findErrors?.(sql, input, target)) ?? []
    if (errors.length > 0) throw createInvalidResourceError(errors)
    return kind.toValues(input, target)
  }
  const readWritten = async (sql: Sql, scope: ResourceScope, id: string): Promise<View> => {
    const row = await find(sql, scope, id)
    if (!row) throw new MasonError('internal', `${kind.name} ${id} was written and cannot be read`)
    return toView(row)
  }

  return {
    async list(scope, { limit, cursor }) {
      const after = readCursor(cursor)
      const count = scopedBy.length
      const { rows } = await database.query<Row>(
        `${select} WHERE ($1::text IS NULL OR (t.created_at, t.${idColumn}) < ($1::timestamptz, $${count + 2})) ${inScope} ORDER BY t.created_at DESC, t.${idColumn} DESC LIMIT $${count + 3}`,
        [after?.at ?? null, ...scopeValues(scope), after?.id ?? null, limit + 1],
      )
      if (rows.length === 0) await checkParent(database, scope)
      return toPage(rows, limit, toView)
    },
    create: (scope, input) =>
      changeRegistry(context, async (sql) => {
        await checkParent(sql, scope, 'FOR SHARE')
        const id = `${kind.prefix}_${randomBytes(12).toString('hex')}`
        const values = await check(sql, input, { id, scope, before: null })
        const names = Object.keys(values)
        await sql.query(
          `INSERT INTO ${table} (${[idColumn, ...names].join(', ')}) VALUES (${[idColumn, ...names].map((_, index) => `$${index + 1}`).join(', ')})`,
          [id, ...Object.values(values)],
        )
        return readWritten(sql, scope, id)
      }),
    async get(scope, id) {
      const row = await find(database, scope, id)
      return row && toView(row)
    },
    change: (scope, id, change) =>
      changeRegistry(context, async (sql) => {
        const before = await find(sql, scope, id, 'FOR UPDATE OF t')
        if (!before) return null
        kind.guard?.(before, change)
        const values = await check(sql, merge(toInput(before), change), { id, scope, before })
        const names = Object.keys(values)
        await sql.query(
          `UPDATE ${table} SET ${names.map((name, index) => `${name} = $${index + 2}`).join(', ')}, updated_at = clock_timestamp() WHERE ${idColumn} = $1`,
          [id, ...Object.values(values)],
        )
        return readWritten(sql, scope, id)
      }),
    remove: (scope, id) =>
      changeRegistry(context, async (sql) => {
        const row = await find(sql, scope, id, 'FOR UPDATE OF t')
        if (!row) return false
        kind.guard?.(row, 'remove')
        await checkUnused(sql, row, id)
        await kind.removeDependents?.(sql, row)
        await sql.query(`DELETE FROM ${table} WHERE ${idColumn} = $1`, [id])
        return true
      }),
  }
}

const readName = (named: unknown): unknown => (named as { name?: unknown }).name

/** A resource that needs the one to be removed. */
type ResourceDependent = { kind: string; id: string; name: string }

const createInvalidResourceError = (errors: readonly FieldError[]): MasonError => {
  const [first] = errors
  const message =
    errors.length === 1 ? `${first?.pointer}: ${first?.detail}` : `the request has ${errors.length} errors`
  return new MasonError('invalid_request', message, { detail: { errors } })
}

const createResourceNotFoundError = (name: string, id: string): MasonError =>
  new MasonError('not_found', `there is no ${name} "${id}"`)

const maxListed = 10

/** `in_use`, with the resources that need this one. */
const createInUseError = (name: string, id: string, users: readonly ResourceDependent[]): MasonError => {
  const list = users.slice(0, maxListed).map((user) => `${user.kind} "${user.name}" (${user.id})`)
  const more = users.length > maxListed ? [`${users.length - maxListed} more`] : []
  return new MasonError('in_use', `${name} "${id}" is used by ${[...list, ...more].join(', ')}`, {
    remedy: 'change or delete these first; wait for requests in progress',
    detail: { users },
  })
}

/** A violated unique constraint as `already_exists`, naming the field; null for any other error. */
const toNameTakenError = (error: unknown): MasonError | null => {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown }
  if (code !== '23505' || typeof constraint !== 'string') return null
  const field = /_(name|label|role|category)_key$/.exec(constraint)?.[1]
  if (field === undefined) return null
  return new MasonError('already_exists', `there is one with this ${field} already`, {
    remedy: `choose another ${field}, or change the one there is with PATCH`,
    detail: { errors: [{ pointer: `/${field}`, detail: 'is taken' }] },
  })
}
