import { getEventListeners, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type EgressOptions, openEgress } from '../../../src/infra/egress/egress.ts'
import type { Egress, EgressResponse } from '../../../src/infra/egress/egress-port.ts'
import { deferred } from '../../support/deferred.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** The first on 127.0.0.2, the second on 127.0.0.1, both on one port: which one is tried, for others may have it. */
const startBeside = async (first: Handler, second: Handler, tries = 20): Promise<{ port: number }> => {
  const { port } = await startServer(first, '127.0.0.2')
  try {
    await startServer(second, '127.0.0.1', port)
    return { port }
  } catch (error) {
    if (tries === 0) throw error
    return startBeside(first, second, tries - 1)
  }
}

/** A listener that nothing may ever reach. */
const startCanary = async (host = '127.0.0.1') => {
  let connections = 0
  const server = createTcpServer((socket) => {
    connections += 1
    socket.destroy()
  }).listen(0, host)
  await once(server, 'listening')
  closers.push(async () => server.close())
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}

const startServer = async (handler: Handler, host = '127.0.0.1', port = 0) => {
  const sockets = new Set<unknown>()
  const server = createServer(handler).listen(port, host)
  server.on('connection', (socket) => sockets.add(socket))
  await once(server, 'listening')
  closers.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, connections: () => sockets.size }
}

const open = (options: EgressOptions = {}): Egress => {
  const egress = openEgress(options)
  closers.push(async () => egress[Symbol.asyncDispose]())
  return egress
}

const textOf = async ({ body }: EgressResponse): Promise<string> => {
  const pieces: Uint8Array[] = []
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) pieces.push(bytes)
  return Buffer.concat(pieces).toString()
}

/** Gives these addresses in turn, the last one for ever, and counts how often it was asked. */
const resolver = (...answers: string[][]) => {
  let asked = 0
  const resolve: EgressOptions['resolve'] = (_host, _options, done) => {
    const addresses = answers[Math.min(asked, answers.length - 1)] ?? []
    asked += 1
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  return { resolve, asked: () => asked }
}

const refusal = expect.objectContaining({ code: 'egress_refused' })

/** Every one leads to the canary in a lenient URL parser. */
const oddSpellings = (port: number): string[] => [
  `http://2130706433:${port}/`,
  `http://0x7f000001:${port}/`,
  `http://0x7f.0.0.1:${port}/`,
  `http://017700000001:${port}/`,
  `http://0177.0.0.1:${port}/`,
  `http://127.1:${port}/`,
  `http://127.0.1:${port}/`,
  `http://127.0.0.1.:${port}/`,
  `http://localhost.:${port}/`,
  `http://127。0。0。1:${port}/`,
  `http://127．0．0．1:${port}/`,
  `http://１２７.０.０.１:${port}/`,
  `http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:${port}/`,
  `http://%31%32%37.0.0.1:${port}/`,
  `http://127.0.0.1%2f:${port}/`,
  `http:\\\\127.0.0.1:${port}\\`,
  `http:/127.0.0.1:${port}/`,
  `http:127.0.0.1:${port}/`,
  `//127.0.0.1:${port}/`,
  ` http://127.0.0.1:${port}/`,
  `http://127.0.0.1:${port}/\n`,
  `ht\ttp://127.0.0.1:${port}/`,
  `http://127.0.0\n.1:${port}/`,
  `http://user@127.0.0.1:${port}/`,
  `http://user:password@127.0.0.1:${port}/`,
  `http://api.openai.com@127.0.0.1:${port}/`,
  `http://@127.0.0.1:${port}/`,
  `http://[::ffff:127.0.0.1]:${port}/`,
  `http://[::ffff:7f00:1]:${port}/`,
  `http://[::127.0.0.1]:${port}/`,
  `http://[::7f00:1]:${port}/`,
  `http://[0:0:0:0:0:0:0:1]:${port}/`,
  `http://[64:ff9b::7f00:1]:${port}/`,
  `http://[64:ff9b::127.0.0.1]:${port}/`,
  `http://[64:ff9b:1::7f00:1]:${port}/`,
  `http://[2002:7f00:1::]:${port}/`,
  `http://[2001:0:7f00:1::]:${port}/`,
  `http://0.0.0.0:${port}/`,
  `http://0:${port}/`,
  `http://[::]:${port}/`,
  `http://169.254.169.254/latest/meta-data/`,
  `http://[fd00:ec2::254]/`,
  `http://100.100.100.200/`,
  `http://[fe80::1]:${port}/`,
  `http://224.0.0.1:${port}/`,
  `http://255.255.255.255:${port}/`,
  `ftp://127.0.0.1:${port}/`,
  `file:///etc/passwd`,
  `gopher://127.0.0.1:${port}/`,
  `data:text/plain,hello`,
  'http://',
  '',
]

describe('what is refused', () => {
  test('every odd spelling of this machine, also where private addresses are allowed', async () => {
    const canary = await startCanary()
    const egress = open({ connectTimeoutMs: 500 })
    for (const allowPrivate of [false, true])
      for (const url of oddSpellings(canary.port))
        await expect(egress.request(url, { allowPrivate }), url).rejects.toEqual(refusal)
    expect(canary.connections()).toBe(0)
  })

  test('this machine and private networks, unless they are allowed', async () => {
    const canary = await startCanary()
    const egress = open()
    for (const host of [
      '127.0.0.1',
      '127.9.9.9',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.1.1',
      '[::1]',
      '[fd12::1]',
    ])
      await expect(egress.request(`http://${host}:${canary.port}/`, {}), host).rejects.toEqual(refusal)
    for (const host of ['localhost', 'a.localhost', 'LOCALHOST'])
      await expect(egress.request(`http://${host}:${canary.port}/`, {}), host).rejects.toEqual(refusal)
    expect(canary.connections()).toBe(0)
  })

  test('a name that leads there, alone or beside a good address', async () => {
    const canary = await startCanary()
    for (const addresses of [
      ['127.0.0.1'],
      ['::1'],
      ['8.8.8.8', '127.0.0.1'],
      ['2606:4700::1', '::ffff:127.0.0.1'],
      ['169.254.169.254'],
      ['64:ff9b::7f00:1'],
      [],
    ]) {
      const egress = open(resolver(addresses))
      await expect(
        egress.request(`http://rebound.test:${canary.port}/`, {}),
        addresses.join(),
      ).rejects.toEqual(refusal)
    }
    const egress = open(resolver(['169.254.169.254']))
    await expect(egress.request('http://metadata.test/', { allowPrivate: true })).rejects.toEqual(refusal)
    expect(canary.connections()).toBe(0)
  })

  test('proxies of the environment', async () => {
    const canary = await startCanary()
    const server = await startServer((_request, response) => response.end('direct'))
    const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']
    const before = names.map((name) => process.env[name])
    for (const name of names) process.env[name] = `http://127.0.0.1:${canary.port}`
    try {
      const answer = await open().request(`http://127.0.0.1:${server.port}/`, { allowPrivate: true })
      expect(await textOf(answer)).toBe('direct')
    } finally {
      names.forEach((name, at) => {
        if (before[at] === undefined) delete process.env[name]
        else process.env[name] = before[at]
      })
    }
    expect(canary.connections()).toBe(0)
  })
})

describe('pinning', () => {
  test('a name that changes between check and connection cannot move the connection', async () => {
    let canary = 0
    const server = await startBeside(
      (_request, response) => response.end('checked'),
      (_request, response) => {
        canary += 1
        response.end('canary')
      },
    )
    const names = resolver(['127.0.0.2'], ['127.0.0.1'])
    const egress = open(names)
    const url = `http://rebinding.test:${server.port}/`
    expect(await textOf(await egress.request(url, { allowPrivate: true }))).toBe('checked')
    expect(names.asked()).toBe(1)
    expect(canary).toBe(0)
  })

  test('a connection that one caller may use is not used for another that may not', async () => {
    const server = await startServer((_request, response) => response.end('private'))
    const egress = open(resolver(['127.0.0.1']))
    const url = `http://both.test:${server.port}/`
    expect(await textOf(await egress.request(url, { allowPrivate: true }))).toBe('private')
    await expect(egress.request(url, {})).rejects.toEqual(refusal)
    expect(server.connections()).toBe(1)
  })
})

describe('redirects', () => {
  let location: (request: IncomingMessage) => string
  let seen: { method: string; url: string; authorization: string | undefined; body: string }[]
  let port: number
  beforeEach(async () => {
    seen = []
    const server = await startServer(async (request, response) => {
      let body = ''
      for await (const part of request) body += String(part)
      const { method = '', url = '', headers } = request
      seen.push({ method, url, authorization: headers.authorization, body })
      const status = Number(/\/(3\d\d)/.exec(url)?.[1] ?? 200)
      response.writeHead(status, status === 200 ? {} : { location: location(request) }).end('here')
    })
    port = server.port
  })
  const start = (path: string) => `http://127.0.0.1:${port}${path}`
  const post = {
    method: 'POST',
    body: '{"a":1}',
    headers: { authorization: 'Bearer s', 'content-type': 'a/b' },
  }

  test('within an origin go on with method, body and key, as fetch has it', async () => {
    location = () => '/end'
    const egress = open()
    expect((await egress.request(start('/307'), { ...post, allowPrivate: true })).status).toBe(200)
    expect((await egress.request(start('/302'), { ...post, allowPrivate: true })).status).toBe(200)
    expect(seen.filter(({ url }) => url === '/end')).toEqual([
      { method: 'POST', url: '/end', authorization: 'Bearer s', body: '{"a":1}' },
      { method: 'GET', url: '/end', authorization: 'Bearer s', body: '' },
    ])
  })

  test('three are followed, and not a fourth', async () => {
    location = ({ url }) => (url === '/307/1' ? '/end' : `/307/${Number(url?.split('/')[2]) - 1}`)
    const egress = open()
    expect((await egress.request(start('/307/3'), { allowPrivate: true })).status).toBe(200)
    seen.length = 0
    await expect(egress.request(start('/307/4'), { allowPrivate: true })).rejects.toEqual(refusal)
    expect(seen).toHaveLength(4)
  })

  test('none is followed where none is wanted: the 3xx itself is the answer', async () => {
    location = () => '/end'
    const answer = await open().request(start('/302'), { allowPrivate: true, maxRedirects: 0 })
    expect([answer.status, answer.headers.get('location'), await textOf(answer)]).toEqual([
      302,
      '/end',
      'here',
    ])
  })

  test('each is checked anew: private addresses elsewhere, odd spellings, metadata, other schemes', async () => {
    const canary = await startCanary()
    const egress = open()
    const targets = [
      ...oddSpellings(canary.port).filter((url) => url.trim() !== '' && /^[\x20-\x7e]+$/.test(url)),
      `http://127.0.0.1:${canary.port}/`,
      `http://localhost:${canary.port}/`,
      `\\\\127.0.0.1:${canary.port}/`,
    ]
    for (const target of targets) {
      location = () => target.trim()
      await expect(egress.request(start('/307'), { allowPrivate: true }), target).rejects.toEqual(refusal)
    }
    location = (request) => (request.url === '/307/a' ? '/307/b' : `http://127.0.0.1:${canary.port}/`)
    await expect(egress.request(start('/307/a'), { allowPrivate: true })).rejects.toEqual(refusal)
    expect(canary.connections()).toBe(0)
  })
})

describe('requests', () => {
  test('a connection serves many requests, and none leaves a listener behind', async () => {
    const server = await startServer((_request, response) => response.end('{"ok":true}'))
    const egress = open()
    const { signal } = new AbortController()
    for (let n = 0; n < 20; n += 1) {
      const answer = await egress.request(`http://127.0.0.1:${server.port}/`, { allowPrivate: true, signal })
      expect(JSON.parse(await textOf(answer))).toEqual({ ok: true })
    }
    // undici opens a second one when a request comes in the very moment the one before ends
    expect(server.connections()).toBeLessThanOrEqual(2)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('statuses, headers and bodies come through; compressed ones are opened', async () => {
    const server = await startServer((request, response) => {
      if (request.url === '/204') return response.writeHead(204).end()
      if (request.url === '/gzip')
        return response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('open me'))
      if (request.url === '/broken')
        return response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip at all')
      return response.writeHead(429, { 'retry-after': '7', 'set-cookie': ['a=1', 'b=2'] }).end('slow down')
    })
    const egress = open()
    const get = (path: string) =>
      egress.request(`http://127.0.0.1:${server.port}${path}`, { allowPrivate: true })
    const answer = await get('/')
    expect([answer.status, await textOf(answer)]).toEqual([429, 'slow down'])
    expect(answer.headers.get('retry-after')).toBe('7')
    expect(answer.headers.get('set-cookie')).toBe('a=1, b=2')
    expect(answer.headers.get('x-none')).toBeNull()
    expect(await textOf(await get('/204'))).toBe('')
    expect(await textOf(await get('/gzip'))).toBe('open me')
    await expect(textOf(await get('/broken'))).rejects.toThrow()
  })

  test('a body comes no faster than it is read', async () => {
    const size = 64 * 1024 * 1024
    let sent = false
    const server = await startServer((request, response) => {
      if (request.url === '/small') return response.end('small')
      return response.end(Buffer.alloc(size, 'x'), () => {
        sent = true
      })
    })
    const egress = open()
    const get = (path: string) =>
      egress.request(`http://127.0.0.1:${server.port}${path}`, { allowPrivate: true })
    const { body } = await get('/large')
    for (let n = 0; n < 30; n += 1) expect(await textOf(await get('/small'))).toBe('small')
    expect(sent).toBe(false)
    let read = 0
    for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) read += bytes.length
    expect(read).toBe(size)
  })

  test('a body that is not wanted costs its connection only where its end does not come at once', async () => {
    const closed = deferred<void>()
    const server = await startServer((request, response) => {
      if (request.url === '/short') return response.end('x'.repeat(1000))
      response.on('close', closed.resolve)
      return response.writeHead(200).write('begun')
    })
    const egress = open()
    const get = (path: string) =>
      egress.request(`http://127.0.0.1:${server.port}${path}`, { allowPrivate: true })
    for (let n = 0; n < 5; n += 1) (await get('/short')).body.cancel()
    const { body } = await get('/endless')
    expect(Buffer.from((await body.read()) ?? []).toString()).toBe('begun')
    const pending = body.read()
    body.cancel()
    expect(await pending).toBeNull()
    await closed.promise
  })

  test('ask once more in the moment before the first byte, and send nothing where that throws', async () => {
    const seen: string[] = []
    const { port, connections } = await startServer((request, response) => {
      seen.push(request.url ?? '')
      response.end('done')
    })
    const egress = open()
    const at: number[] = []
    const ask = (path: string, beforeSend: () => void) =>
      egress.request(`http://127.0.0.1:${port}/${path}`, {
        method: 'POST',
        body: 'order',
        allowPrivate: true,
        beforeSend,
      })
    const late = new Error('too late')
    const refusing = ask('refused', () => {
      // by now there is a connection: all that takes time is over
      at.push(connections())
      throw late
    })
    await expect(refusing).rejects.toBe(late)
    expect(await textOf(await ask('sent', () => at.push(seen.length)))).toBe('done')
    expect(seen).toEqual(['/sent'])
    expect(at).toEqual([1, 0])
  })

  test('headers without end are cut off', async () => {
    const server = await startServer((_request, response) =>
      response.writeHead(200, { 'x-much': 'x'.repeat(100_000) }).end(),
    )
    await expect(
      open().request(`http://127.0.0.1:${server.port}/`, { allowPrivate: true }),
    ).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_OVERFLOW' })
  })
})

describe('stopping', () => {
  const reason = new Error('enough')

  test('an abort ends a request at every stage, with its reason', async () => {
    const server = await startServer((request, response) => {
      if (request.url === '/headers') return
      response.writeHead(200)
      response.write('begun')
    })
    const url = `http://127.0.0.1:${server.port}`
    const never = open({ resolve: () => undefined })
    const egress = open()
    const stages: ((signal: AbortSignal) => Promise<unknown>)[] = [
      (signal) => never.request('http://unresolved.test/', { signal }),
      (signal) => egress.request(`${url}/headers`, { signal, allowPrivate: true }),
      async (signal) => textOf(await egress.request(`${url}/body`, { signal, allowPrivate: true })),
    ]
    await expect(egress.request(url, { signal: AbortSignal.abort(reason), allowPrivate: true })).rejects.toBe(
      reason,
    )
    // while the modules of a first request are loaded
    const early = new AbortController()
    const loading = open().request(`${url}/headers`, { signal: early.signal, allowPrivate: true })
    early.abort(reason)
    await expect(loading).rejects.toBe(reason)
    for (const stage of stages) {
      const controller = new AbortController()
      const outcome = stage(controller.signal).catch((error: unknown) => error)
      setTimeout(() => controller.abort(reason), 50)
      expect(await outcome).toBe(reason)
    }
  })

  test('closing ends what is under way, and nothing is sent after it', async () => {
    const server = await startServer((_request, response) => void response.writeHead(200).write('begun'))
    const egress = openEgress({ resolve: () => undefined })
    const url = `http://127.0.0.1:${server.port}/`
    const answer = await egress.request(url, { allowPrivate: true })
    const text = textOf(answer).catch((error: unknown) => error)
    const unresolved = egress.request('http://unresolved.test/', {}).catch((error: unknown) => error)
    await egress[Symbol.asyncDispose]()
    expect(await text).toBeInstanceOf(Error)
    expect(await unresolved).toBeInstanceOf(Error)
    await expect(egress.request(url, { allowPrivate: true })).rejects.toThrow('closed')
  })
})
