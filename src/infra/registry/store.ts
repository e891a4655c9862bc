import { randomBytes } from 'node:crypto'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { Fault } from '../../state/registry/common.ts'
import type { Page } from '../../state/run-view.ts'
import { type Database, one } from '../database/database.ts'
import { pageOf, readCursor } from '../runs/page.ts'
import { inUse, invalid, notFound, takenName, type User } from './faults.ts'

/** Which rows are meant, by columns: those of one vendor, of one key. */
export type Scope = Readonly<Record<string, string | undefined>>

/** What can be done with one kind of thing that admins manage. Null or false: there is no such one. */
export type Store<Input, Change, View> = {
  list(scope: Scope, page: { limit: number; cursor?: string }): Promise<Page<View>>
  /** `invalid_request` (detail.errors), `already_exists`; `not_found` when what it belongs to is not there. */
  create(scope: Scope, input: Input): Promise<View>
  get(scope: Scope, id: string): Promise<View | null>
  /** Absent fields stay as they are. Also `forbidden` for what Mason keeps by itself. */
  change(scope: Scope, id: string, change: Change): Promise<View | null>
  /** `in_use` (detail.users) while anything needs it. */
  remove(scope: Scope, id: string): Promise<boolean>
}

export type StoredRow = { id: string; created_at: Date; updated_at: Date; at: string }

export const timesOf = ({ id, created_at, updated_at }: Omit<StoredRow, 'at'>) => ({
  id,
  created_at: created_at.toISOString(),
  updated_at: updated_at.toISOString(),
})

/** The row as it was (null when it is made), and what it belongs to. */
export type Place<Row> = { id: string; scope: Scope; before: Row | null }

/** One kind of thing: its table, and what only this kind knows of itself. */
export type Kind<Row extends StoredRow, Input, Change, View> = {
  /** As people call it. */
  name: string
  prefix: string
  table: string
  idColumn: string
  /** What a row is read as, beside id and times; the table is `t`. */
  columns: string
  joins?: string
  /** Columns by which it may be listed. */
  scopedBy: readonly string[]
  /** The table and column of what it belongs to. */
  parent?: { name: string; table: string; column: string }
  viewOf(row: Row): View
  /** The row as somebody would send it. */
  inputOf(row: Row): Input
  merge(before: Input, change: Change): Input
  /** What does not go with the rest of the registry. */
  faultsOf(sql: Sql, input: Input, place: Place<Row>): Promise<Fault[]>
  valuesOf(input: Input, place: Place<Row>): Record<string, unknown>
  /** What needs it. */
  usersOf(sql: Sql, row: Row): Promise<User[]>
  /** Throws for what cannot be changed or removed, whoever asks. */
  guard?(row: Row, change: Change | 'remove'): void
  /** Takes away what goes with it. */
  removeWith?(sql: Sql, row: Row): Promise<void>
}

/** `changed` is called after every change, so that it takes effect here at once and elsewhere soon. */
export type StoreContext = { database: Database; changed(): Promise<void> }

/** Changes of admins come one after the other, so that what was checked still holds when it is written. */
export const changeRegistry = async <T>(
  { database, changed }: StoreContext,
  work: (sql: Sql) => Promise<T>,
): Promise<T> => {
  const result = await database
    .transaction(async (sql) => {
      await sql.query("SELECT pg_advisory_xact_lock(hashtext('mason.registry'))")
      return work(sql)
    })
    .catch((error: unknown) => {
      throw takenName(error) ?? error
    })
  await changed()
  return result
}

export const createStore = <Row extends StoredRow, Input, Change extends object, View>(
  context: StoreContext,
  kind: Kind<Row, Input, Change, View>,
): Store<Input, Change, View> => {
  const { database } = context
  const { table, idColumn, scopedBy } = kind
  const select = `SELECT t.${idColumn} AS id, t.created_at, t.updated_at, t.created_at::text AS at, ${kind.columns}
    FROM ${table} t ${kind.joins ?? ''}`
  const inScope = scopedBy
    .map((column, index) => `AND ($${index + 2}::text IS NULL OR t.${column} = $${index + 2})`)
    .join(' ')
  const scopeValues = (scope: Scope) => scopedBy.map((column) => scope[column] ?? null)

  const find = (sql: Sql, scope: Scope, id: string, lock = ''): Promise<Row | null> =>
    one<Row>(sql, `${select} WHERE t.${idColumn} = $1 ${inScope} ${lock}`, [id, ...scopeValues(scope)])

  const checkParent = async (sql: Sql, scope: Scope, lock = ''): Promise<void> => {
    if (!kind.parent) return
    const { name, table: parents, column } = kind.parent
    const id = scope[column] ?? ''
    if (!(await one(sql, `SELECT 1 AS there FROM ${parents} WHERE ${column} = $1 ${lock}`, [id])))
      throw notFound(name, id)
  }
  const check = async (sql: Sql, input: Input, place: Place<Row>): Promise<Record<string, unknown>> => {
    const faults = await kind.faultsOf(sql, input, place)
    if (faults.length > 0) throw invalid(faults)
    return kind.valuesOf(input, place)
  }
  const written = async (sql: Sql, scope: Scope, id: string): Promise<View> => {
    const row = await find(sql, scope, id)
    if (!row) throw new MasonError('internal', `${kind.name} ${id} was written and is not there`)
    return kind.viewOf(row)
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
      return pageOf(rows, limit, kind.viewOf)
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
        return written(sql, scope, id)
      }),
    async get(scope, id) {
      const row = await find(database, scope, id)
      return row && kind.viewOf(row)
    },
    change: (scope, id, change) =>
      changeRegistry(context, async (sql) => {
        const before = await find(sql, scope, id, 'FOR UPDATE OF t')
        if (!before) return null
        kind.guard?.(before, change)
        const values = await check(sql, kind.merge(kind.inputOf(before), change), { id, scope, before })
        const names = Object.keys(values)
        await sql.query(
          `UPDATE ${table} SET ${names.map((name, index) => `${name} = $${index + 2}`).join(', ')}, updated_at = clock_timestamp() WHERE ${idColumn} = $1`,
          [id, ...Object.values(values)],
        )
        return written(sql, scope, id)
      }),
    remove: (scope, id) =>
      changeRegistry(context, async (sql) => {
        const row = await find(sql, scope, id, 'FOR UPDATE OF t')
        if (!row) return false
        kind.guard?.(row, 'remove')
        const users = await kind.usersOf(sql, row)
        if (users.length > 0) throw inUse(kind.name, id, users)
        await kind.removeWith?.(sql, row)
        await sql.query(`DELETE FROM ${table} WHERE ${idColumn} = $1`, [id])
        return true
      }),
  }
}
