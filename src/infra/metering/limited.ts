import type { Sql } from '../../state/ports.ts'
import { isUnavailable } from '../database/faults.ts'
import type { Reserved } from '../models/ports.ts'
import type { ReserveRow } from './rows.ts'
import { reserveUsage } from './statements.ts'

const maxAtOnce = 64
/** Two, so that keys do not all wait for one that is held elsewhere. */
const maxStatements = 2

type Waiting = { row: ReserveRow; resolve(reserved: Reserved): void; reject(error: unknown): void }

/**
 * Reserves under the limits of keys. Those that come in one turn of the event loop, or while others are asked for, share
 * a statement. `onUnknown` hears of those of which it is not known whether the database took them.
 */
export const createLimited = (database: Sql, onUnknown: (row: ReserveRow) => void) => {
  const line: Waiting[] = []
  let statements = 0

  const ask = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const refused = await reserveUsage(
        database,
        batch.map(({ row }) => row),
      )
      for (const { row, resolve } of batch) resolve(refused.get(row.request_id) ?? { granted: true })
    } catch (error) {
      const passing = isUnavailable(error)
      // one that the database cannot take costs the others a statement each
      if (!passing && batch.length > 1) await Promise.all(batch.map((one) => ask([one])))
      else
        for (const { row, reject } of batch) {
          if (passing) onUnknown(row)
          reject(error)
        }
    }
  }
  const askNext = async (): Promise<void> => {
    if (statements >= maxStatements || line.length === 0) return
    statements++
    await ask(line.splice(0, maxAtOnce))
    statements--
    void askNext()
  }

  return (row: ReserveRow): Promise<Reserved> =>
    new Promise((resolve, reject) => {
      line.push({ row, resolve, reject })
      // when all that have come together are in line
      setImmediate(() => void askNext())
    })
}
