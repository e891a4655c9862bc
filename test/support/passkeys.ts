import { expect } from 'vitest'
import type { Sql } from '../../src/state/ports/sql.ts'
import type { Authenticator, Ceremony } from './authenticator.ts'
import type { Reply, TestServer } from './http.ts'
import { adminToken, runtimeTest } from './integration-test.ts'

/** The site of the tests below, which is not where the server listens: `MASON_PUBLIC_URL` counts, not the Host header. */
export const site = { origin: 'https://pay.example', rpId: 'pay.example' }

/** A test with passkeys and no worker. */
export const passkeyTest = runtimeTest.extend(
  'runtimeOptions',
  { scope: 'file' },
  { worker: false, config: { publicUrl: site.origin } },
)

/** Sends a request as the proxy of the business `default`. */
export const asProxy = (server: TestServer, method: string, path: string, json?: object): Promise<Reply> =>
  server.call(method, path, { token: adminToken, ...(json && { json }) })

/** The path of a new link, as the user's browser opens it. */
export const newEnrolment = async (server: TestServer, user: string, query = ''): Promise<string> => {
  const { status, body } = await asProxy(server, 'POST', `/v1/users/${user}/passkeys${query}`)
  expect(status).toBe(201)
  expect(body.url.startsWith(`${site.origin}/passkeys/`)).toBe(true)
  return body.url.slice(site.origin.length)
}

/** What the page of a path has for its script. */
export const readPage = async (server: TestServer, path: string) => {
  const reply = await server.call('GET', path)
  const data = /data-page="([^"]*)"/.exec(reply.text)?.[1]?.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
  return { ...reply, page: data === undefined ? null : JSON.parse(data) }
}

/** Enrols a passkey by the link of this path. */
export const enrol = async (
  server: TestServer,
  path: string,
  authenticator: Authenticator,
  changes: Partial<Ceremony> = {},
): Promise<Reply> => {
  const { page } = await readPage(server, path)
  const challenge = page?.options.challenge ?? ''
  return server.call('POST', path, { json: authenticator.create({ ...site, challenge, ...changes }) })
}

/** Lets the links of a user expire now, or in so many seconds and for another purpose. No role may change that of a link. */
export const expireLinks = async (
  sql: Sql,
  user: string,
  { seconds = 0, ...changes }: { seconds?: number; purpose?: string; ref_id?: string } = {},
): Promise<void> => {
  const { rows } = await sql.query<{ row: object }>(
    'SELECT to_json(l) AS row FROM consent_links l WHERE user_id = $1',
    [user],
  )
  await sql.query('DELETE FROM consent_links WHERE user_id = $1', [user])
  for (const { row } of rows)
    await sql.query(
      `INSERT INTO consent_links (link_hash, tenant, user_id, purpose, ref_id, expires_at)
       SELECT link_hash, tenant, user_id, purpose, ref_id, clock_timestamp() + $2::int * interval '1 second'
       FROM json_populate_record(NULL::consent_links, $1)`,
      [JSON.stringify({ ...row, ...changes }), seconds],
    )
}
