import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { seedDatabase } from '../../src/app/seed-database.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'

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

/** Again and again: the server may be cleaning its tables up by itself, which only a superuser may end. */
export const dropDatabase = async (name: string, attempts = 100): Promise<void> => {
  try {
    await runAsAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  } catch (error) {
    if (attempts === 0) throw error
    await pause(100)
    await dropDatabase(name, attempts - 1)
  }
}

/** Names the migrated database that files of tests with processes copy, where a run has one. */
export const templateSetting = 'MASON_TEST_TEMPLATE'

/** Makes the database once, migrated and with the rows that Mason brings; each test file works in a copy of it. */
export default async (project: TestProject) => {
  const name = `mason_template_${randomBytes(4).toString('hex')}`
  await runAsAdmin(`CREATE DATABASE ${name}`)
  // later: the bench copies this file to earlier versions of the source
  const { migrateServed } = await import('./served-logins.ts')
  await migrateServed(urlOf(name))
  const database = openPostgresDatabase({ url: urlOf(name) })
  await seedDatabase(database)
  await database.close()
  project.provide('template', name)
  process.env[templateSetting] = name
  return () => dropDatabase(name)
}
