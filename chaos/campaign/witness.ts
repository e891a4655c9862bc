import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

/** Faults of the statement itself: asking again would give the same. */
const lasting = /^(22|23|42)/

/** The harness's own way to the database, past the proxies, for as long as it takes the server to come back. */
export class Witness {
  readonly #pool: pg.Pool

  constructor(url: string) {
    this.#pool = new pg.Pool({
      connectionString: url,
      max: 3,
      options: '-c search_path=mason,public -c role=mason_worker',
      connectionTimeoutMillis: 5000,
      query_timeout: 60_000,
    })
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => void client.on('error', () => {}))
  }

  async query<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    for (let attempt = 1; ; attempt++)
      try {
        return (await this.#pool.query<Row>(text, values as unknown[])).rows
      } catch (error) {
        if (attempt === 300 || lasting.test(String((error as { code?: unknown }).code))) throw error
        await pause(200)
      }
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}
