import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import type { KeyEntry } from '../../src/models/ports/model-ports.ts'
import { openMeter, reservationOf, settlementOf, usageOf } from './meter.ts'

/** A process that asks models without end, as far as the meter can tell. Prints the id of each request that is in the ledger. */

const { url, keys } = JSON.parse(process.argv[2] ?? '') as { url: string; keys: KeyEntry[] }
const database = openPostgresDatabase({ url })
const meter = openMeter(database)

const lane = async (at: number): Promise<never> => {
  for (let turn = at; ; turn++) {
    const key = keys[turn % keys.length] as KeyEntry
    const reservation = reservationOf(key, { tokens: 100 })
    const reserved = await meter.reserve(reservation).catch(() => null)
    if (!reserved?.granted) continue
    meter.settle(reservation, settlementOf({ usage: usageOf(turn % 50, 1) }))
    await meter.flush()
    console.log(reservation.request_id)
  }
}
await Promise.all(Array.from({ length: 8 }, (_, at) => lane(at)))
