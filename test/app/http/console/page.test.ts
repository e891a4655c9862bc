import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { test as base, expect } from 'vitest'
import { createFakeRuntime } from '../../../support/fake-runtime.ts'
import { startServer } from '../../../support/http.ts'

const script = `console.log('${'mason '.repeat(200)}')`
const index = `<!doctype html>
<html>
  <head>
    <script type="module" src="./assets/app-abc12345.js"></script>
  </head>
</html>
`

const test = base
  .extend('folder', async ({}, { onCleanup }) => {
    const folder = await mkdtemp(join(tmpdir(), 'console-'))
    onCleanup(() => rm(folder, { recursive: true }))
    await mkdir(join(folder, 'assets'))
    await writeFile(join(folder, 'index.html'), index)
    const path = join(folder, 'assets', 'app-abc12345.js')
    await writeFile(path, script)
    await writeFile(`${path}.br`, brotliCompressSync(script))
    await writeFile(`${path}.gz`, gzipSync(script))
    return folder
  })
  .extend(
    'serve',
    async ({ folder }, { onCleanup }) =>
      async (publicOrigin = 'http://localhost:8080', options = {}) => {
        const { runtime } = createFakeRuntime()
        const server = await startServer({
          ...{ runtime: { ...runtime, publicOrigin }, auth: 'required', consoleFolder: folder, ...options },
        })
        onCleanup(() => server.close())
        return server
      },
  )

const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** Sends the path as it is: fetch removes dot segments. */
const getRaw = (url: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    request({ hostname, port, path }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })

test('every deep link of the console is its page, which no cache keeps', async ({ serve }) => {
  const server = await serve()
  for (const path of ['/console', '/console/', '/console/runs/run_1?tab=graph', '/console/a.b/%E4%BD%A0']) {
    const reply = await server.call('GET', path)
    expect([reply.status, reply.text]).toEqual([
      200,
      index
        .replace('./assets/', '/console/assets/')
        .replace('<head>', '<head>\n    <meta name="mason-base" content="">'),
    ])
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      ...headers,
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
    })
  }
})

test('a file of the console is compressed as the browser asks, and kept for good', async ({ serve }) => {
  const server = await serve()
  for (const [accepted, encoding] of [
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['identity', null],
  ] as const) {
    const reply = await server.call('GET', '/console/assets/app-abc12345.js', {
      headers: { 'accept-encoding': accepted },
    })
    expect([reply.status, reply.text]).toEqual([200, script])
    expect(reply.headers.get('content-encoding')).toBe(encoding)
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      ...headers,
      'content-type': expect.stringMatching(/^(text|application)\/javascript/),
      'cache-control': 'public, max-age=31536000, immutable',
      vary: expect.stringMatching(/accept-encoding/i),
    })
  }
})

test('what is not a file or a page of the console is not found', async ({ serve }) => {
  const { url } = await serve()
  for (const path of [
    '/console/assets/none.js',
    '/console/assets/../index.html',
    '/console/assets/..%2findex.html',
    '/console/assets/%2e%2e/index.html',
    '/console/assets%2fapp-abc12345.js',
    '/console/assets/..%5cindex.html',
    '/console/assets/app-abc12345.js%00',
    '/console/../../etc/passwd',
    '/console/runs/..%2f..%2fetc%2fpasswd',
    '/console/%2e%2e/package.json',
    '/console/..\\package.json',
  ])
    expect([path, await getRaw(url, path)]).toEqual([path, 404])
})

test('behind a proxy the page has the path of the public address, whether the proxy strips it or not', async ({
  serve,
}) => {
  const server = await serve('https://example.com/tools/mason')
  for (const prefix of ['', '/tools/mason']) {
    const page = await server.call('GET', `${prefix}/console/runs`)
    expect(page.text).toContain('src="/tools/mason/console/assets/app-abc12345.js"')
    expect(page.text).toContain('<meta name="mason-base" content="/tools/mason">')
    const file = await server.call('GET', `${prefix}/console/assets/app-abc12345.js`)
    expect([file.status, file.text]).toEqual([200, script])
    expect((await server.call('GET', `${prefix}/healthz`)).status).toBe(200)
    expect((await server.call('GET', `${prefix}/v1/runs`)).body.code).toBe('unauthorized')
  }
  expect((await server.call('GET', '/tools/masonry/console')).status).toBe(404)
})

test('a console that is not built says how to build it', async ({ serve, folder }) => {
  const server = await serve(undefined, { consoleFolder: join(folder, 'missing') })
  const reply = await server.call('GET', '/console/runs')
  expect(reply.status).toBe(404)
  expect(reply.text).toContain('npm run build:console')
  expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8')
})

test('MASON_CONSOLE=off takes the console away', async ({ serve }) => {
  const server = await serve(undefined, { console: 'off' })
  for (const path of ['/console', '/console/runs', '/console/assets/app-abc12345.js'])
    expect((await server.call('GET', path)).status).toBe(404)
})
