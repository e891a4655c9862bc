import pg from 'pg'
import { migrateServed } from '../../test/support/served-logins.ts'
import { runAsAdmin, urlOf } from '../../test/support/setup-served.ts'

/** `node template-process.js '{"make" | "drop": name}'`: the database that measurements copy, by the migrations of this build. */
const make = async (name: string): Promise<void> => {
  await runAsAdmin(`CREATE DATABASE ${name}`)
  await migrateServed(urlOf(name))
}

/** With the copies of measurements that broke off before they could drop their own. */
const drop = async (name: string): Promise<void> => {
  const client = new pg.Client({ connectionString: process.env.TEST_DATABASE_URL })
  await client.connect()
  const { rows } = await client.query<{ datname: string }>(
    'SELECT datname FROM pg_database WHERE starts_with(datname, $1)',
    [name],
  )
  await client.end()
  for (const { datname } of rows) await runAsAdmin(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`)
}

const task = JSON.parse(process.argv[2] ?? '') as { make?: string; drop?: string }
if (task.make) await make(task.make)
if (task.drop) await drop(task.drop)
process.send?.('done', () => process.exit(0))
