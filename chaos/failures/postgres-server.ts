import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { succeeds } from './run.ts'

const programs = '/usr/lib/postgresql'

/** One private PostgreSQL server, to be stopped the hard way. */
export class PostgresServer {
  readonly url: string
  readonly #data: string

  constructor(data: string, url: string) {
    this.#data = data
    this.url = url
  }

  /** As after a power cut: every process of the server is gone at once, nothing is flushed. */
  async crash(): Promise<void> {
    await this.#control('stop', '-m', 'immediate')
  }

  /** Kills the first process; its children see that and go, each when it looks up. */
  async kill(): Promise<void> {
    const pid = this.pid
    process.kill(pid, 'SIGKILL')
    while (existsSync(`/proc/${pid}/cwd`)) await pause(20)
  }

  /** Starts it where it stood; waits until it takes connections. */
  async start(): Promise<void> {
    for (
      let attempt = 1;
      !(await this.#control('start', '-t', '60', '-o', `-p ${new URL(this.url).port}`));
      attempt++
    ) {
      // children of one that was killed may hold its shared memory for a moment
      if (attempt === 20)
        throw new Error(`Postgres does not start again; see ${join(this.#data, 'server.log')}`)
      await pause(250)
    }
  }

  get isUp(): Promise<boolean> {
    return this.#control('status')
  }

  /** Ends every connection of Mason's from the server's side; gives how many. */
  async cutConnections(): Promise<number> {
    const url = new URL(this.url)
    url.username = 'postgres'
    const client = new pg.Client({ connectionString: url.href })
    client.on('error', () => {})
    await client.connect()
    try {
      const cut = await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND pid <> pg_backend_pid()`,
        [new URL(this.url).username],
      )
      return cut.rowCount ?? 0
    } finally {
      await client.end()
    }
  }

  /** What the server has logged so far. */
  get log(): string {
    return readFileSync(join(this.#data, 'server.log'), 'utf8')
  }

  get pid(): number {
    return Number(readFileSync(join(this.#data, 'postmaster.pid'), 'utf8').split('\n')[0])
  }

  #control(...args: string[]): Promise<boolean> {
    const command = [pgControl(), '-D', this.#data, '-s', '-l', join(this.#data, 'server.log'), '-w', ...args]
    const whole = userInfo().uid === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command
    const [program = '', ...rest] = whole
    return succeeds(program, rest)
  }
}

const pgControl = (): string => {
  const newest = readdirSync(programs).sort((a, b) => Number(b) - Number(a))[0]
  return join(programs, newest ?? '', 'bin', 'pg_ctl')
}
