import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '..', '..')
type Service = { environment?: Record<string, string | null>; command?: string[]; image: string }
type Compose = { services: Record<string, Service> }

/** A compose file with its variables, by the rules of https://docs.docker.com/reference/compose-file/interpolation/ */
const resolve = (path: string, variables: Record<string, string>): Compose => {
  const text = readFileSync(join(root, path), 'utf8').replaceAll(
    /\$\$|\$\{(\w+)(?:(:[-?])([^}]*))?\}/g,
    (whole, name: string | undefined, operator: string | undefined, word = '') => {
      if (name === undefined) return whole
      const value = variables[name] ?? ''
      if (value === '' && operator === ':?')
        throw new Error(`required variable ${name} is missing a value: ${word}`)
      return value === '' && operator === ':-' ? word : value
    },
  )
  return parse(text, { merge: true }) as Compose
}
/** What the error of each missing variable names, one variable after the other, and the file with all of them. */
const fillIn = (path: string) => {
  const variables: Record<string, string> = {}
  for (;;)
    try {
      return { variables, file: resolve(path, variables) }
    } catch (error) {
      const name = /required variable (\w+)/.exec(String(error))?.[1]
      if (name === undefined || name in variables) throw error
      variables[name] = `secret-of-${name.toLowerCase()}`
    }
}
const passwordOf = (url: string | null | undefined): string => new URL(url ?? '').password
const redisOf = ({ command }: Service): string | undefined => command?.[command.indexOf('--requirepass') + 1]

describe('a compose file', () => {
  test('has no default password: the owner, each login and Redis have one of their own', () => {
    const { variables, file } = fillIn('compose.yaml')
    const { api, worker, payments, migrate, postgres, redis } = file.services as Record<string, Service>
    const urls = [
      migrate?.environment?.MASON_MIGRATE_URL,
      api?.environment?.MASON_API_DATABASE_URL,
      worker?.environment?.MASON_WORKER_DATABASE_URL,
      payments?.environment?.MASON_PAYMENT_DATABASE_URL,
    ]
    const passwords = urls.map(passwordOf)
    expect(passwords).toEqual([
      variables.MASON_DB_PASSWORD,
      variables.MASON_API_DB_PASSWORD,
      variables.MASON_WORKER_DB_PASSWORD,
      variables.MASON_PAYMENT_DB_PASSWORD,
    ])
    expect(new Set(passwords).size).toBe(4)
    expect(new Set(urls.map((url) => new URL(url ?? '').username)).size).toBe(4)
    expect(postgres?.environment?.POSTGRES_PASSWORD).toBe(variables.MASON_DB_PASSWORD)
    for (const service of [api, worker, payments, migrate])
      expect(passwordOf(service?.environment?.REDIS_URL)).toBe(variables.MASON_REDIS_PASSWORD)
    expect(redisOf(redis as Service)).toBe(variables.MASON_REDIS_PASSWORD)
    // the executor's password is neither the API's nor a worker's to read
    for (const service of [api, worker])
      expect(JSON.stringify(service)).not.toContain(variables.MASON_PAYMENT_DB_PASSWORD)
  })

  test('names each image of others by its digest', () => {
    const files = ['compose.yaml', 'templates/project/compose.yaml'].map((path) => fillIn(path).file)
    const images = files.flatMap(({ services }) => Object.values(services).map(({ image }) => image))
    const others = [...new Set(images)].filter((image) => image !== 'mason')
    expect(others.length).toBeGreaterThan(2)
    for (const image of others) expect(image).toMatch(/@sha256:[0-9a-f]{64}$/)
  })

  test('of `mason init` has no default password either', () => {
    const { variables, file } = fillIn('templates/project/compose.yaml')
    const { api, worker, postgres, redis } = file.services as Record<string, Service>
    for (const service of [api, worker]) {
      expect(passwordOf(service?.environment?.DATABASE_URL)).toBe(variables.MASON_DB_PASSWORD)
      expect(passwordOf(service?.environment?.REDIS_URL)).toBe(variables.MASON_REDIS_PASSWORD)
    }
    expect(postgres?.environment?.POSTGRES_PASSWORD).toBe(variables.MASON_DB_PASSWORD)
    expect(redisOf(redis as Service)).toBe(variables.MASON_REDIS_PASSWORD)
    const example = readFileSync(join(root, 'templates/project/env.example'), 'utf8')
    for (const name of Object.keys(variables)) expect(example).toContain(`${name}=`)
  })

  test('gets all that it asks for from the commands of README.md', () => {
    const { variables } = fillIn('compose.yaml')
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    const names = /for name in ([A-Z_ ]+)\n/.exec(readme)?.[1]?.split(' ') ?? []
    expect(['MASON_MASTER_KEY', ...names.map((name) => `MASON_${name}`)].sort()).toEqual(
      Object.keys(variables).sort(),
    )
  })
})
