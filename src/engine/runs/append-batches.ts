import type { Database } from '../../infra/database/database.ts'
import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import { createStatementBatches } from '../../infra/database/statement-batches.ts'
import { unlessAborted } from '../../state/deadline.ts'
import { type Append, toAppendStatement, toBatchStatement } from './append-statements.ts'
import { createLeaseLostError, type LeaseGuard } from './leases.ts'

type HeldAppend = Append & { lease: LeaseGuard; bytes: number }

/** Bounds of what shares a commit. Of an embedded database, which has no flush to share, less. */
const limits = { postgres: { rows: 64, bytes: 1024 * 1024 }, embedded: { rows: 16, bytes: 256 * 1024 } }

const bytesOf = ({ row }: Append): number => {
  let bytes = 0
  for (const value of Object.values(row)) if (typeof value === 'string') bytes += value.length
  return bytes
}

/**
 * The appends of all runs of one worker. Those that arrive during a commit share the next one, each under its own fence;
 * one that arrives while nothing is being written starts at once. The ends of runs have batches of their own: their
 * triggers may wait for a user who is being forgotten.
 */
export const createAppendBatches = (database: Database, leaseMs: number) => {
  const { rows: maxSize, bytes: maxBytes } = limits[database.kind]
  // a connection that hangs is closed, and each row is resolved by its attempt id while its lease lasts
  const timeout = { timeoutMs: leaseMs / 3 }

  const write = async (appends: readonly HeldAppend[]): Promise<(boolean | Error)[]> => {
    const lost = new Map(appends.map((append) => [append, findLoss(append.lease)]))
    const sent = appends.filter((append) => !lost.get(append))
    const [first] = sent
    const statement =
      first && (sent.length === 1 ? toAppendStatement(first, { waits: false }) : toBatchStatement(sent))
    const written = statement
      ? (await database.query<{ attempt_id: string }>(...statement, timeout)).rows
      : []
    const committed = new Set(written.map(({ attempt_id }) => attempt_id))
    return appends.map((append) => lost.get(append) ?? committed.has(append.row.attempt_id))
  }
  const openBatches = () =>
    createStatementBatches<HeldAppend, boolean>({
      maxSize,
      maxInFlight: 1,
      maxBytes,
      bytesOf: ({ bytes }) => bytes,
      listNames: ({ row }) => [`${row.tenant}/${row.run_id}`],
      write,
      writeAlone: async () => false,
    })
  const [appendTogether, finishTogether] = [openBatches(), openBatches()]

  /** True once it is durable. False: it may not be, and its own statement tells. Throws `lease_lost`. */
  return async (append: Append, lease: LeaseGuard): Promise<boolean> => {
    // most appends settle no side effect, and their statement should not name that table
    if (append.kind === 'effect') return false
    const bytes = bytesOf(append)
    if (bytes > maxBytes) return false
    const together = append.kind === 'append' ? appendTogether : finishTogether
    try {
      const isCommitted = await unlessAborted(together({ ...append, lease, bytes }), lease.signal)
      lease.check()
      return isCommitted
    } catch (error) {
      if (lease.signal.aborted) throw createLeaseLostError(lease.signal.reason)
      if (!isDatabaseUnavailable(error)) throw error
      return false
    }
  }
}

/** See `createAppendBatches`. */
export type AppendBatches = ReturnType<typeof createAppendBatches>

const findLoss = (lease: LeaseGuard): Error | null => {
  try {
    lease.check()
    return lease.signal.aborted ? createLeaseLostError(lease.signal.reason) : null
  } catch (error) {
    return error as Error
  }
}
