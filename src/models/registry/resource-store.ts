import { randomBytes } from 'node:crypto'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { isUniqueViolation } from '../../infra/database/database-errors.ts'
import { cutJson, isLongJson, readPage, truncatedColumn } from '../../infra/database/pagination.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { Page } from '../../state/run-view.ts'
/** Selects rows by columns: those of one vendor, of one key. */
export type ResourceScope = Readonly<Record<string, string>>

/** The operations on one kind of resource that admins manage. Null or false: there is no such resource. */
export type ResourceStore<Input, Change, View, Created = View> = {
  list(scope: ResourceScope, page: { limit: number; cursor?: string }): Promise<Page<View>>
  /** Throws `invalid_request` (detail.errors), `already_exists`, or `not_found` when its parent does not exist. */
  create(scope: ResourceScope, input: Input): Promise<Created>
  get(scope: ResourceScope, id: string): Promise<View | null>
  /** Absent fields stay as they are. Also throws `forbidden` for what Mason manages itself. */
  change(scope: ResourceScope, id: string, change: Change): Promise<View | null>
  /** Throws `in_use` (detail.users) while another resource needs it. */
  remove(scope: ResourceScope, id: string): Promise<boolean>
}

/** The columns of every resource. */
export type ResourceRow = { id: string; created_at: Date; updated_at: Date }

/** The resource that is written: its id, its scope, and the row before (null for a new one). */
export type ResourceTarget<Row> = { id: string; scope: ResourceScope; before: Row | null }

/** One kind of resource: its table, its views and its rules. */
export type ResourceKind<Row extends ResourceRow, Input, Change, View> = {
  /** The name in messages. */
  name: string
  prefix: string
  table: string
  idColumn: string
  /** The fields of the body that are columns of the same name. */
  fields: readonly (keyof Input & string)[]
  /** The fields that are stored as JSON, without null members. */
  json?: readonly (keyof Input & string)[]
  /** The fields that a change merges by member: null removes one, or all. */
  merged?: readonly (keyof Input & keyof Change & string)[]
  /** Other selected columns; the table is `t`. */
  columns?: string
  /** Those of a list, and when which field of the view is cut, where they differ. */
  listed?: { columns: string; truncated: Readonly<Record<string, string>> }
  joins?: string
  /** It belongs to a vendor, as the first of the columns that filter lists. */
  ofVendor?: true
  /** Columns that filter lists. */
  scopedBy?: readonly string[]
  /** The fields of the body that are not columns of the same name. */
  toInput?(row: Row): Partial<Input>
  /** The fields of the view that neither the body nor every resource has. */
  toView?(row: Row): Partial<View>
  /** Completes the change, beside the fields that are replaced or merged. */
  complete?(merged: Input, before: Input, change: Change): Input
  /** Conflicts with the rest of the registry. */
  findErrors?(sql: Sql, input: Input, target: ResourceTarget<Row>): Promise<FieldError[]>
  /** The columns that differ from the fields of the body. */
  toValues?(input: Input, target: ResourceTarget<Row>): Record<string, unknown>
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

/** Inserts a row; `onConflict` is the clause for one that exists. */
const insertRow = (sql: Sql, table: string, row: Readonly<Record<string, unknown>>, onConflict = '') => {
  const columns = Object.keys(row)
  return sql.query(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((_, index) => `$${index + 1}`).join(', ')}) ${onConflict}`,
    Object.values(row),
  )
}

/** Inserts the row of this id, or sets its columns; `fixed` are columns of a new row that stay afterwards. */
export const upsertRow = async (
  sql: Sql,
  table: string,
  idColumn: string,
  { id, ...columns }: Readonly<{ id: string } & Record<string, unknown>>,
  fixed: Readonly<Record<string, unknown>> = {},
): Promise<void> => {
  const changes = Object.keys(columns).map((column) => `${column} = excluded.${column}`)
  const onConflict = `ON CONFLICT (${idColumn}) DO UPDATE SET ${changes.join(', ')}, updated_at = clock_timestamp()`
  await insertRow(sql, table, { [idColumn]: id, ...fixed, ...columns }, onConflict)
}

/** The members that have a value. */
export const dropNulls = <Members extends object>(
  members: Members,
): { [Name in keyof Members]?: NonNullable<Members[Name]> } =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value != null)) as Members

/** The operations on one kind of resource, over its table. */
export const createResourceStore = <Row extends ResourceRow, Input, Change extends object, View>(
  context: ResourceStoreContext,
  kind: ResourceKind<Row, Input, Change, View>,
): ResourceStore<Input, Change, View> => {
  const { database } = context
  const { table, idColumn, fields, json = [], merged = [], ofVendor } = kind
  const vendorColumns = ofVendor ? ['vendor_id'] : []
  const scopedBy = [...vendorColumns, ...(kind.scopedBy ?? [])]

  const pickColumns = (row: Row, columns: readonly string[]) =>
    Object.fromEntries(columns.map((column) => [column, row[column as keyof Row]]))
  const toInput = (row: Row) => ({ ...pickColumns(row, fields), ...kind.toInput?.(row) }) as Input
  const toView = (row: Row) =>
    ({
      ...pickColumns(row, [...vendorColumns, ...fields]),
      ...kind.toView?.(row),
      id: row.id,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString(),
    }) as View
  const merge = (before: Input, change: Change): Input => {
    const members = merged
      .filter((field) => change[field] !== undefined)
      .map((field) => [
        field,
        change[field] === null ? {} : dropNulls({ ...before[field], ...change[field] } as object),
      ])
    const after = { ...before, ...change, ...Object.fromEntries(members) }
    return kind.complete?.(after, before, change) ?? after
  }
  const toColumn = (input: Input, field: keyof Input & string): unknown => {
    const value = input[field] ?? null
    if (value === null || !json.includes(field)) return value
    return JSON.stringify(Array.isArray(value) ? value : dropNulls(value))
  }
  const toValues = (input: Input, target: ResourceTarget<Row>): Record<string, unknown> => ({
    ...Object.fromEntries(fields.map((field) => [field, toColumn(input, field)])),
    ...kind.toValues?.(input, target),
  })

  const buildSelect = (fieldColumns: readonly string[], more = kind.columns): string =>
    [
      `t.${idColumn} AS id, t.created_at, t.updated_at`,
      ...vendorColumns.map((column) => `t.${column}`),
      ...fieldColumns,
      ...(more ? [more] : []),
    ].join(', ')
  const from = `${table} t ${kind.joins ?? ''}`
  const select = `SELECT ${buildSelect(fields.map((field) => `t.${field}`))} FROM ${from}`
  const listedSelect = buildSelect(
    fields.map((field) => (json.includes(field) ? `${cutJson(`t.${field}`)} AS ${field}` : `t.${field}`)),
    kind.listed?.columns,
  )
  const truncated = truncatedColumn({
    ...Object.fromEntries(json.map((field) => [field, isLongJson(`t.${field}`)])),
    ...kind.listed?.truncated,
  })
  const inScope = (first: number) =>
    scopedBy
      .map((column, index) => `($${index + first}::text IS NULL OR t.${column} = $${index + first})`)
      .join(' AND ') || 'true'
  const scopeValues = (scope: ResourceScope) => scopedBy.map((column) => scope[column] ?? null)

  const find = (sql: Sql, scope: ResourceScope, id: string, lock = ''): Promise<Row | null> =>
    queryOne<Row>(sql, `${select} WHERE t.${idColumn} = $1 AND ${inScope(2)} ${lock}`, [
      id,
      ...scopeValues(scope),
    ])

  const checkVendor = async (sql: Sql, { vendor_id = '' }: ResourceScope, lock = ''): Promise<void> => {
    if (!ofVendor || (await queryOne(sql, `SELECT 1 FROM vendors WHERE vendor_id = $1 ${lock}`, [vendor_id])))
      return
    throw new MasonError('not_found', `there is no vendor "${vendor_id}"`)
  }
  const checkUnused = async (sql: Sql, row: Row): Promise<void> => {
    if (!kind.dependents) return
    const { by, query } = kind.dependents
    const { rows } = await sql.query<ResourceDependent>(query, [by === 'id' ? row.id : readName(row)])
    if (rows.length > 0) throw createInUseError(kind.name, row.id, rows)
  }
  const check = async (
    sql: Sql,
    input: Input,
    target: ResourceTarget<Row>,
  ): Promise<Record<string, unknown>> => {
    const { before } = target
    // others name it
    if (before && kind.dependents?.by === 'name' && readName(before) !== readName(input))
      await checkUnused(sql, before)
    const errors = (await kind.findErrors?.(sql, input, target)) ?? []
    if (errors.length > 0) throw createInvalidResourceError(errors)
    return toValues(input, target)
  }
  const readWritten = async (sql: Sql, scope: ResourceScope, id: string): Promise<View> => {
    const row = await find(sql, scope, id)
    if (!row) throw new MasonError('internal', `${kind.name} ${id} was written and cannot be read`)
    return toView(row)
  }

  return {
    async list(scope, page) {
      const list = {
        select: `${listedSelect}, ${truncated}`,
        from,
        where: inScope(1),
        values: scopeValues(scope),
        at: 't.created_at',
        id: `t.${idColumn}`,
      }
      const read = await readPage<Row, View>(database, list, page, toView)
      if (read.data.length === 0) await checkVendor(database, scope)
      return read
    },
    create: (scope, input) =>
      changeRegistry(context, async (sql) => {
        await checkVendor(sql, scope, 'FOR SHARE')
        const id = `${kind.prefix}_${randomBytes(12).toString('hex')}`
        const values = await check(sql, input, { id, scope, before: null })
        const { vendor_id } = scope
        await insertRow(sql, table, { [idColumn]: id, ...(ofVendor && { vendor_id }), ...values })
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
        const changes = Object.keys(values).map((column, index) => `${column} = $${index + 2}`)
        await sql.query(
          `UPDATE ${table} SET ${changes.join(', ')}, updated_at = clock_timestamp() WHERE ${idColumn} = $1`,
          [id, ...Object.values(values)],
        )
        return readWritten(sql, scope, id)
      }),
    remove: (scope, id) =>
      changeRegistry(context, async (sql) => {
        const row = await find(sql, scope, id, 'FOR UPDATE OF t')
        if (!row) return false
        kind.guard?.(row, 'remove')
        await checkUnused(sql, row)
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
  const { constraint } = (error ?? {}) as { constraint?: unknown }
  if (!isUniqueViolation(error) || typeof constraint !== 'string') return null
  const field = /_(name|label|role|category)_key$/.exec(constraint)?.[1]
  if (field === undefined) return null
  return new MasonError('already_exists', `there is one with this ${field} already`, {
    remedy: `choose another ${field}, or change the one there is with PATCH`,
    detail: { errors: [{ pointer: `/${field}`, detail: 'is taken' }] },
  })
}
