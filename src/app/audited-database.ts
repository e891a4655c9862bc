import { AsyncLocalStorage } from 'node:async_hooks'
import type { AuditView } from '../accounts/audit-schemas.ts'
import type { Database } from '../infra/database/database.ts'
import { newAuditId } from '../infra/lib/ids.ts'
import type { Sql } from '../state/ports/sql.ts'

/** Who changes what: one request of an admin. Where it names no `resource_id`, the log gets the id of what is made. */
export type AuditEntry = Omit<AuditView, 'id' | 'at'>

/** A transaction has an id once it has written: one that has only read, or changed no row, leaves no trace. */
const insertStatement = `
  INSERT INTO audit_log (audit_id, token_id, token_label, address, request_id, operation, resource, resource_id, business_id, fields)
  SELECT $audit_id::text, $token_id::text, $token_label::text, $address::text, $request_id::text, $operation::text,
    $resource::text, $resource_id::text, $business_id::text, ARRAY(SELECT json_array_elements_text($fields::json))
  WHERE pg_current_xact_id_if_assigned() IS NOT NULL`

/** The ids that Mason makes. */
const madeId = /^[a-z]{2,5}_[0-9a-f]{24,32}$/

/** Writes the requests of admins into the log, each in every transaction in which it changes something. See decision 111. */
export const createAuditing = () => {
  const requests = new AsyncLocalStorage<AuditEntry>()
  let atWork = 0

  const audited = (sql: Sql, entry: AuditEntry) => {
    let made: string | null = null
    return {
      sql: {
        query: (text, values = []) => {
          if (/\bINSERT INTO\b/.test(text))
            made ??=
              Object.values(values).find(
                (value): value is string => typeof value === 'string' && madeId.test(value),
              ) ?? null
          return sql.query(text, values)
        },
      } satisfies Sql as Sql,
      write: () =>
        sql.query(insertStatement, {
          ...entry,
          audit_id: newAuditId(),
          resource_id: entry.resource_id ?? made,
          fields: JSON.stringify(entry.fields),
        }),
    }
  }
  /** `pipelined`: all statements are sent before the first wait, this one too. */
  const auditWork =
    <T>(work: (sql: Sql) => Promise<T>, pipelined: boolean | undefined) =>
    async (sql: Sql): Promise<T> => {
      const entry = requests.getStore()
      if (!entry) return work(sql)
      const scope = audited(sql, entry)
      const working = work(scope.sql)
      const [result] = pipelined
        ? await Promise.all([working, scope.write()])
        : [await working, await scope.write()]
      return result
    }

  return {
    /** What `work` does until it settles belongs to the request; until then each promise of the process looks here for its request. */
    run: <T>(entry: AuditEntry, work: () => Promise<T>): Promise<T> => {
      atWork++
      return requests.run(entry, work).finally(() => {
        if (--atWork === 0) requests.disable()
      })
    },
    /** The database whose transactions write what a request of an admin changes. */
    wrap: <Wrapped extends Database>(database: Wrapped): Wrapped => ({
      ...database,
      query: (text, values) =>
        requests.getStore() && !/^\s*SELECT\b/.test(text)
          ? database.transaction(
              auditWork((sql) => sql.query(text, values), true),
              { pipelined: true },
            )
          : database.query(text, values),
      transaction: (work, scope) => database.transaction(auditWork(work, scope?.pipelined), scope),
      asBusiness: (businessId, work, scope) =>
        database.asBusiness(businessId, auditWork(work, scope?.pipelined), scope),
    }),
  }
}

/** See `createAuditing`. */
export type Auditing = ReturnType<typeof createAuditing>
