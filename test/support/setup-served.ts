import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { seedBuiltIn } from '../../src/infra/database/head-start.ts'
import { migratePostgres, openPostgres } from '../../src/infra/database/postgres.ts'

/** The server's own database, in which others are made and dropped. */
const adminUrl = () => process.env.TEST_DATABASE_URL ?? ''

export const urlOf = (name: string): string => {
  const url = new URL(adminUrl())
  url.pathname = `/${name}`
  return url.href
}

export const runAsAdmin = async (statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: adminUrl() })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** Makes the database once, migrated and with the rows that Mason brings; each test file works in a copy of it. */
export default async (project: TestProject) => {
  const name = `mason_template_${randomBytes(4).toString('hex')}`
  await runAsAdmin(`CREATE DATABASE ${name}`)
  await migratePostgres(urlOf(name))
  const database = await openPostgres({ url: urlOf(name), migrate: false })
  await seedBuiltIn(database)
  await database.close()
  project.provide('template', name)
  return () => runAsAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
}
