import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError, ResourceSchemas } from '../../state/resource-schema.ts'
import type { Page } from '../../state/run-view.ts'
import { type Database, queryOne } from '../database/database.ts'
import { isUniqueViolation } from '../database/database-errors.ts'
import { cutJson, isLongJson, readPage, truncatedColumn } from '../database/pagination.ts'
import { toIsoTimes } from '../database/row-times.ts'

/** Selects rows by fields: those of one vendor, of one business. */
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

/** What the rows of every resource have. Times are texts in ISO 8601. */
export type ResourceRow = { id: string }

/** The resource that is written: its id, the fields that it has for good, the row before and its change (null for a new one). */
export type ResourceTarget<Row, Change> = {
  id: string
  scope: ResourceScope
  before: Row | null
  change: Change | null
}

/** One kind of resource: its table, its views and its rules. */
export type ResourceKind<Row extends ResourceRow, Input, Change, View> = {
  /** The name in messages. */
  name: string
  /** Of its ids, where they are random. */
  prefix?: string
  /** The id that the body gives a new one. */
  toId?(input: Input): string
  table: string
  idColumn: string
  /** The schema of the body. */
  input?: { shape: object }
  /** The fields of the body that are columns of the same name; absent: all but the fixed ones. */
  fields?: readonly (keyof Input & string)[]
  /** The columns of fields that stay as the path or the body of a new one has them. They filter lists. */
  fixed?: Readonly<Record<string, string>>
  /** The fixed fields of a request that names none. */
  defaults?: ResourceScope
  /** Its parent, whose id is a fixed field. */
  parent?: { name: string; table: string; idColumn: string }
  /** The conditions by which other fields filter lists; `$in_name` is the value of one. */
  filters?: Readonly<Record<string, string>>
  /** The columns of the view that no body has. */
  readOnly?: readonly (keyof View & string)[]
  /** Its times, of which the first orders lists. */
  times?: readonly ('created_at' | 'updated_at')[]
  /** The fields that are stored as JSON. */
  json?: readonly (keyof Input & string)[]
  /** The fields that a change merges by member: null removes one, or all. */
  merged?: readonly (keyof Input & keyof Change & string)[]
  /** Other selected columns; the table is `t`. */
  columns?: string
  /** Those of a list, and when which field of the view is cut, where they differ. */
  listed?: { columns: string; truncated: Readonly<Record<string, string>> }
  joins?: string
  /** The time at which one ends in place of being deleted. */
  endedAt?: string
  /** All statements run on behalf of its business, the field `business_id`. */
  asBusiness?: true
  /** Before the transaction of a new one. */
  prepare?(database: Database, scope: ResourceScope): Promise<void>
  /** The fields of the body that are not columns of the same name. */
  toInput?(row: Row): Partial<Input>
  /** The fields of the view that neither the body nor every resource has. */
  toView?(row: Row): Partial<View>
  /** Completes the change, beside the fields that are replaced or merged. */
  complete?(merged: Input, before: Input, change: Change): Input
  /** Conflicts with other rows. */
  findErrors?(sql: Sql, input: Input, target: ResourceTarget<Row, Change>): Promise<FieldError[]>
  /** The columns that differ from the fields of the body. */
  toValues?(
    input: Input,
    target: ResourceTarget<Row, Change>,
    sql: Sql,
  ): Record<string, unknown> | Promise<Record<string, unknown>>
  /** Writes the rows that belong to it: after a new one, before a change, whose trigger may lock a row that all share. */
  writeDependents?(sql: Sql, input: Input, target: ResourceTarget<Row, Change>): Promise<void>
  /** The error where a row has its unique columns. */
  toTakenError?(input: Input): MasonError
  /** A query of the resources that need it: `kind`, `id` and `name`, by the column `by` of the row. */
  dependents?: { by: 'id' | 'name'; query: string }
  /** Throws when no admin may change or remove it. */
  guard?(row: Row, change: Change | 'remove'): void
  /** Deletes the rows that belong to it. */
  removeDependents?(sql: Sql, row: Row): Promise<void>
}

/** Where resources are stored. */
export type ResourceStoreContext = {
  database: Database
  /** Changes that take one lock run one after the other, so that checks of other rows still hold when the row is written. */
  lock?: string
  /** Called after every change, so that it takes effect here at once and in other processes soon. */
  changed?(): unknown
}

/** Runs a change of an admin, on behalf of a business where it names one. Throws `already_exists`. */
export const changeResources = async <T>(
  { database, lock, changed }: ResourceStoreContext,
  work: (sql: Sql) => Promise<T>,
  businessId?: string,
): Promise<T> => {
  const locked = async (sql: Sql): Promise<T> => {
    if (lock !== undefined) await sql.query('SELECT pg_advisory_xact_lock(hashtext($1))', [lock])
    return work(sql)
  }
  const changing =
    businessId === undefined ? database.transaction(locked) : database.asBusiness(businessId, locked)
  const result = await changing.catch((error: unknown) => {
    throw toNameTakenError(error) ?? error
  })
  await changed?.()
  return result
}

/** Inserts a row; `onConflict` is the clause for one that exists. */
const insertRow = (sql: Sql, table: string, row: SqlRow, onConflict = '') => {
  const columns = Object.keys(row)
  const values = columns.map((column) => `$${column}`)
  return sql.query(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values.join(', ')}) ${onConflict}`,
    row,
  )
}

type SqlRow = Readonly<Record<string, NonNullable<unknown> | null>>

/** Inserts the row of this id, or sets its columns; `fixed` are columns of a new row that stay afterwards. */
export const upsertRow = async (
  sql: Sql,
  table: string,
  idColumn: string,
  { id, ...columns }: SqlRow & { id: string },
  fixed: SqlRow = {},
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

const pick = (from: object, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(names.map((name) => [name, from[name as keyof typeof from]]))

/** The operations on one kind of resource, over its table. `Input` differs from the body where a row has less, or more, than it. */
export const createResourceStore = <
  Row extends ResourceRow,
  Schemas extends ResourceSchemas,
  Input = z.output<Schemas['input']>,
  Change = z.output<Schemas['change']>,
  View = z.output<Schemas['view']>,
>(
  context: ResourceStoreContext,
  kind: ResourceKind<Row, Input, Change, View>,
): ResourceStore<Input, Change, View> => {
  const { database } = context
  const { table, idColumn, parent, readOnly = [], json = [], merged = [], endedAt } = kind
  const { times = ['created_at', 'updated_at'] } = kind
  const fixed = { ...(parent && { [parent.idColumn]: parent.idColumn }), ...kind.fixed }
  const fixedNames = Object.keys(fixed)
  const fields =
    kind.fields ??
    (Object.keys(kind.input?.shape ?? {}) as (keyof Input & string)[]).filter((name) => !(name in fixed))
  const filters: Readonly<Record<string, string>> = {
    ...Object.fromEntries(Object.entries(fixed).map(([name, column]) => [name, `t.${column} = $in_${name}`])),
    ...kind.filters,
  }

  const toInput = (row: Row) => ({ ...pick(row, fields), ...kind.toInput?.(row) }) as Input
  const toView = (row: Row) =>
    ({ ...pick(row, [...fixedNames, ...fields, ...readOnly, 'id', ...times]), ...kind.toView?.(row) }) as View
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
    return JSON.stringify(merged.some((name) => name === field) ? dropNulls(value) : value)
  }

  const buildSelect = (fieldColumns: readonly string[], more = kind.columns): string =>
    [
      `t.${idColumn} AS id`,
      ...Object.entries(fixed).map(([name, column]) => `t.${column} AS ${name}`),
      ...[...times, ...readOnly].map((column) => `t.${column}`),
      ...fieldColumns,
      ...(more ? [more] : []),
    ].join(', ')
  const from = `${table} t ${kind.joins ?? ''}`
  const select = buildSelect(fields.map((field) => `t.${field}`))
  const listedSelect = buildSelect(
    fields.map((field) => (json.includes(field) ? `${cutJson(`t.${field}`)} AS ${field}` : `t.${field}`)),
    kind.listed?.columns,
  )
  const truncated = truncatedColumn({
    ...Object.fromEntries(json.map((field) => [field, isLongJson(`t.${field}`)])),
    ...kind.listed?.truncated,
  })
  /** The condition of the rows of a scope that have not ended, with its values. */
  const toCondition = (scope: ResourceScope): { where: string; values: SqlRow } => {
    const names = Object.keys(filters).filter((name) => scope[name] !== undefined)
    const conditions = [
      ...(endedAt === undefined ? [] : [`t.${endedAt} IS NULL`]),
      ...names.map((name) => filters[name]),
    ]
    return {
      where: conditions.join(' AND ') || 'true',
      values: Object.fromEntries(names.map((name) => [`in_${name}`, scope[name] ?? null])),
    }
  }
  const toScope = (scope: ResourceScope): ResourceScope => ({ ...kind.defaults, ...scope })
  const toBusinessId = ({ business_id }: ResourceScope) => (kind.asBusiness ? business_id : undefined)
  const read = <T>(scope: ResourceScope, work: (sql: Sql) => Promise<T>): Promise<T> => {
    const businessId = toBusinessId(scope)
    return businessId === undefined ? work(database) : database.asBusiness(businessId, work)
  }
  const write = <T>(scope: ResourceScope, work: (sql: Sql) => Promise<T>): Promise<T> =>
    changeResources(context, work, toBusinessId(scope))

  const find = async (sql: Sql, scope: ResourceScope, id: string, lock = ''): Promise<Row | null> => {
    const { where, values } = toCondition(scope)
    const text = `SELECT ${select} FROM ${from} WHERE t.${idColumn} = $id AND ${where} ${lock}`
    const row = await queryOne<object>(sql, text, { id, ...values })
    return row && (toIsoTimes(row) as Row)
  }
  const checkParent = async (sql: Sql, scope: ResourceScope, lock = ''): Promise<void> => {
    if (!parent) return
    const id = scope[parent.idColumn] ?? ''
    const text = `SELECT 1 FROM ${parent.table} WHERE ${parent.idColumn} = $1 ${lock}`
    if (!(await queryOne(sql, text, [id])))
      throw new MasonError('not_found', `there is no ${parent.name} "${id}"`)
  }
  const checkUnused = async (sql: Sql, row: Row): Promise<void> => {
    if (!kind.dependents) return
    const { by, query } = kind.dependents
    const { rows } = await sql.query<ResourceDependent>(query, [by === 'id' ? row.id : readName(row)])
    if (rows.length > 0) throw createInUseError(kind.name, row.id, rows)
  }
  const check = async (sql: Sql, input: Input, target: ResourceTarget<Row, Change>): Promise<SqlRow> => {
    const { before } = target
    // others name it
    if (before && kind.dependents?.by === 'name' && readName(before) !== readName(input))
      await checkUnused(sql, before)
    const errors = (await kind.findErrors?.(sql, input, target)) ?? []
    if (errors.length > 0) throw createInvalidResourceError(errors)
    return {
      ...Object.fromEntries(fields.map((field) => [field, toColumn(input, field)])),
      ...(await kind.toValues?.(input, target, sql)),
    } as SqlRow
  }
  const readWritten = async (sql: Sql, scope: ResourceScope, id: string): Promise<View> => {
    const row = await find(sql, scope, id)
    if (!row) throw new MasonError('internal', `${kind.name} ${id} was written and cannot be read`)
    return toView(row)
  }

  return {
    list(requested, page) {
      const scope = toScope(requested)
      const list = {
        ...toCondition(scope),
        select: `${listedSelect}, ${truncated}`,
        from,
        at: `t.${times[0]}`,
        id: `t.${idColumn}`,
      }
      return read(scope, async (sql) => {
        const found = await readPage<object, View>(sql, list, page, (row) => toView(toIsoTimes(row) as Row))
        if (found.data.length === 0) await checkParent(sql, scope)
        return found
      })
    },
    async create(requested, input) {
      const sent: Readonly<Record<string, unknown>> = { ...requested, ...input }
      const scope = dropNulls(pick(sent, fixedNames)) as ResourceScope
      const id = kind.toId?.(input) ?? `${kind.prefix}_${randomBytes(12).toString('hex')}`
      await kind.prepare?.(database, scope)
      return write(scope, async (sql) => {
        await checkParent(sql, scope, 'FOR SHARE')
        const target = { id, scope, before: null, change: null }
        const values = await check(sql, input, target)
        const own = Object.entries(fixed).map(([name, column]) => [column, scope[name] ?? null])
        const row = { [idColumn]: id, ...Object.fromEntries(own), ...values }
        await insertRow(sql, table, row).catch((error) => {
          throw (isUniqueViolation(error) && kind.toTakenError?.(input)) || error
        })
        await kind.writeDependents?.(sql, input, target)
        return readWritten(sql, scope, id)
      })
    },
    async get(requested, id) {
      const scope = toScope(requested)
      const row = await read(scope, (sql) => find(sql, scope, id))
      return row && toView(row)
    },
    change(requested, id, change) {
      const scope = toScope(requested)
      return write(scope, async (sql) => {
        const before = await find(sql, scope, id, 'FOR NO KEY UPDATE OF t')
        if (!before) return null
        kind.guard?.(before, change)
        const input = merge(toInput(before), change)
        const target = { id, scope, before, change }
        const set = await check(sql, input, target)
        const changes = [
          ...Object.keys(set).map((column) => `${column} = $${column}`),
          ...times.filter((time) => time === 'updated_at').map((time) => `${time} = clock_timestamp()`),
        ]
        await kind.writeDependents?.(sql, input, target)
        const { where, values } = toCondition(scope)
        await sql.query(
          `UPDATE ${table} t SET ${changes.join(', ')} WHERE t.${idColumn} = $in_id AND ${where}`,
          { in_id: id, ...values, ...set },
        )
        return readWritten(sql, scope, id)
      })
    },
    remove(requested, id) {
      const scope = toScope(requested)
      return write(scope, async (sql) => {
        const row = await find(sql, scope, id, 'FOR UPDATE OF t')
        if (!row) return false
        kind.guard?.(row, 'remove')
        await checkUnused(sql, row)
        await kind.removeDependents?.(sql, row)
        const { where, values } = toCondition(scope)
        const removing = endedAt
          ? `UPDATE ${table} t SET ${endedAt} = clock_timestamp()`
          : `DELETE FROM ${table} t`
        await sql.query(`${removing} WHERE t.${idColumn} = $id AND ${where}`, { id, ...values })
        return true
      })
    },
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
