import pg from 'pg'
import type { Database } from '../../src/infra/database/database.ts'
import type { Place } from './place.ts'

/** A connection of our own to the measured database, as plain as it comes. */
export const connect = async ({ databaseUrl }: Pick<Place, 'databaseUrl'>): Promise<pg.Client> => {
  const client = new pg.Client({
    connectionString: databaseUrl,
    options: '-c search_path=mason,public -c role=mason_worker',
  })
  await client.connect()
  return client
}

export const query = async <Row>(place: Place, text: string, values: unknown[] = []): Promise<Row[]> => {
  const client = await connect(place)
  try {
    return (await client.query(text, values)).rows as Row[]
  } finally {
    await client.end()
  }
}

/** Its own vacuum comes by within a minute; an embedded database has none. */
export const settle = async (place: Place, { kind }: Database, tables: readonly string[]): Promise<void> => {
  if (kind === 'embedded') return
  const client = new pg.Client({ connectionString: place.databaseUrl })
  await client.connect()
  for (const table of tables) await client.query(`VACUUM ANALYZE mason.${table}`)
  await client.end()
}
