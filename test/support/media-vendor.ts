import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A vendor of images, recordings, videos and rankings on loopback, in the shapes of OpenAI's and Cohere's APIs. */

export type MediaVendorRequest = {
  method: string
  path: string
  key: string
  role: string
  /** The JSON of the body, or the text fields of a form. */
  fields: Record<string, unknown>
  /** The files of a form: field, name, type and bytes. */
  files: { field: string; name: string; type: string; bytes: Buffer }[]
}

export type MediaVendor = AsyncDisposable & {
  /** Up to and with `/v1`. */
  baseUrl: string
  requests: MediaVendorRequest[]
  /** The requests to a path, given by its end. */
  to(path: string): MediaVendorRequest[]
  /** How many polls of a job say that it is in progress; Infinity: until it is set lower. */
  pollsLeft: number
  /** Replaces the next answers to a path: a status and a body. */
  fail: Map<string, { status: number; body: unknown; type?: string }>
  /** Rankings: the score of a document for the query. */
  score(query: string, document: string): number
  /** Called with each request before it is answered. */
  onRequest(request: MediaVendorRequest): void | Promise<void>
}

export const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
export const mp3 = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\x23', 'latin1'), Buffer.alloc(300, 7)])
export const mp4 = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42', 'latin1'), Buffer.alloc(5000, 3)])
export const wav = Buffer.concat([Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1'), Buffer.alloc(64, 1)])

const readFields = async (
  type: string,
  body: Buffer,
): Promise<Pick<MediaVendorRequest, 'fields' | 'files'>> => {
  if (type.startsWith('application/json')) return { fields: JSON.parse(body.toString()), files: [] }
  const fields: Record<string, unknown> = {}
  const files: MediaVendorRequest['files'] = []
  if (!type.startsWith('multipart/form-data')) return { fields, files }
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
  for (const [field, value] of form)
    if (typeof value === 'string') fields[field] = value
    else {
      const { name, type: mime } = value
      files.push({ field, name, type: mime, bytes: Buffer.from(await value.arrayBuffer()) })
    }
  return { fields, files }
}

type Answer = { status?: number; body: unknown; type?: string }

export const startMediaVendor = async (): Promise<MediaVendor> => {
  const requests: MediaVendorRequest[] = []
  const jobs: string[] = []
  const image = { b64_json: png.toString('base64') }
  const usage = { input_tokens: 10, output_tokens: 90, total_tokens: 100 }

  const answer = ({ method, path, fields }: MediaVendorRequest): Answer => {
    if (path === '/v1/images/generations')
      return { body: { created: 1, data: Array(Number(fields.n ?? 1)).fill(image), usage } }
    if (path === '/v1/images/edits') return { body: { created: 1, data: [image], usage } }
    if (path === '/v1/audio/transcriptions')
      return {
        body: {
          text: 'The weekly call is on Tuesday.',
          usage: { type: 'tokens', input_tokens: 31, output_tokens: 11, total_tokens: 42 },
        },
      }
    if (path === '/v1/audio/speech') return { body: mp3, type: 'audio/mpeg' }
    if (method === 'POST' && path === '/v1/videos') {
      jobs.push(`video_${jobs.length + 1}`)
      return {
        body: { id: jobs.at(-1), object: 'video', status: 'queued', model: fields.model, error: null },
      }
    }
    const [, id, content] = /^\/v1\/videos\/(\w+)(\/content)?$/.exec(path) ?? []
    if (id !== undefined && !jobs.includes(id))
      return { status: 404, body: { error: { message: `no ${id}` } } }
    if (content !== undefined) return { body: mp4, type: 'video/mp4' }
    if (id !== undefined) {
      const status = vendor.pollsLeft > 0 ? 'in_progress' : 'completed'
      vendor.pollsLeft -= 1
      return { body: { id, object: 'video', status, progress: 50, error: null } }
    }
    if (path === '/v1/rerank') {
      const documents = fields.documents as string[]
      const results = documents
        .map((document, index) => ({ index, relevance_score: vendor.score(String(fields.query), document) }))
        .sort((a, b) => b.relevance_score - a.relevance_score)
      return { body: { id: 'r1', results, meta: { api_version: { version: '2' } } } }
    }
    return { status: 404, body: { error: { message: `there is no ${method} ${path}` } } }
  }

  const server = createServer(async (incoming, response) => {
    const { method = '', url: path = '', headers } = incoming
    const request = {
      method,
      path,
      key: String(headers.authorization).replace('Bearer ', ''),
      role: String(headers['x-mason-role']),
      ...(await readFields(String(headers['content-type']), await buffer(incoming))),
    }
    requests.push(request)
    await vendor.onRequest(request)
    const { status = 200, body, type } = vendor.fail.get(path) ?? answer(request)
    response.writeHead(status, { 'content-type': type ?? 'application/json' })
    response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const vendor: MediaVendor = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    to: (path) => requests.filter((request) => request.path.endsWith(path)),
    pollsLeft: 0,
    fail: new Map(),
    score: () => 0.5,
    onRequest: () => {},
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return vendor
}
