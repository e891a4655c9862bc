import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

/** The harness's own way to the database, past the proxies, for as long as it takes the server to come back. */
export class Witness {
  readonly #url: string
  #client: pg.Client | null = null

  constructor(url: string) {
    this.#url = url
  }

  async query<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    for (let attempt = 1; ; attempt++)
      try {
        this.#client ??= await this.#connect()
        return (await this.#client.query<Row>(text, values as unknown[])).rows
      } catch (error) {
        this.#client?.end().catch(() => {})
        this.#client = null
        if (attempt === 300 || /^(42|22|23)/.test(String((error as { code?: unknown }).code))) throw error
        await pause(200)
      }
  }

  async close(): Promise<void> {
    await this.#client?.end().catch(() => {})
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      options: '-c search_path=mason,public -c role=mason_worker',
      connectionTimeoutMillis: 5000,
      query_timeout: 60_000,
    })
    client.on('error', () => {})
    await client.connect()
    return client
  }
}
