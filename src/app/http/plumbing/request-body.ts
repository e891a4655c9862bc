import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { settlesWithin } from '../../../infra/lib/timeouts.ts'
import { HttpError } from '../../../routes/problems.ts'
import type { App, RouteDoc } from '../../../routes/route.ts'
import { MasonError } from '../../../state/errors.ts'
import { createFieldsError, type FieldError, toPointer } from '../../../state/resource-schema.ts'
import { maxRequestBytes } from '../../../state/run-request.ts'
import { type JsonSize, quoteNumbers, scanJson } from '../../../state/text/exact-json.ts'
import { maxJsonValues } from '../../../state/text/json-size.ts'
import { type BodyMemory, createBodyBudget } from './body-budget.ts'
import type { Step } from './large-bodies.ts'

/** How much of a body that is too large is still read, so that its sender receives the response. */
const maxReadBytes = 4 * maxRequestBytes
/** What a body that is passed on in chunks takes: a part of 1 MiB and its copy on the way to the database. */
const streamedBytes = 2 * 1024 * 1024
/** Of a request that needs no token. */
const maxOpenBytes = 1024 * 1024

/** A request whose sender holds its body back until it is asked for (`Expect: 100-continue`), or not. */
type HeldRequest = Readable & { askForBody?: (() => void) | undefined }

/** Milliseconds without a byte of a body, and until a body that is held in memory is there. */
export type BodyTimes = { idleMs: number; wholeMs: number }

/**
 * Reads the body of every request, of any content type: whole, or as the chunks of a route that reads them itself. Every
 * body is within the budget until its request ends.
 */
export const limitBodies = (app: App, memory: BodyMemory, times: BodyTimes): void => {
  const budget = createBodyBudget(memory)
  app.server.on('checkContinue', (request: IncomingMessage & HeldRequest, response) => {
    request.askForBody = () => response.writeContinue()
    app.server.emit('request', request, response)
  })
  app.decorateRequest('bodyMemory')
  app.addHook('preParsing', async (request, reply, payload) => {
    const memory = budget.open(nameCaller(request))
    request.bodyMemory = memory
    reply.raw.once('finish', memory.release).once('close', memory.release)
    return payload
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: HeldRequest) => {
    const { doc } = request.routeOptions.config
    if (!doc?.streamed)
      return readBody(payload, request, doc?.role === null ? maxOpenBytes : maxRequestBytes, times)
    request.bodyMemory.raiseTo(streamedBytes)
    return readChunks(payload, times.idleMs, Number.POSITIVE_INFINITY)
  })
}

/** One name for each token. */
export const nameCaller = ({ principal, headers }: FastifyRequest): string =>
  (principal?.kind === 'token' && headers.authorization) || (principal?.kind ?? 'unknown')

/**
 * Reads a whole body. One over the limit is read on without being stored, unless it was not asked for: a reset would hide the 413
 * from its sender. Throws 408 for one that comes too slowly, 413, and what the budget throws.
 */
const readBody = async (stream: HeldRequest, request: FastifyRequest, max: number, times: BodyTimes) => {
  const length = Number(request.headers['content-length'])
  if (length > (stream.askForBody ? max : maxReadBytes)) throw tooLarge(max)
  const isStored = !(length > max)
  if (isStored && length > 0) request.bodyMemory.raiseTo(length)
  // memory that no byte was written to yet takes none
  const whole = isStored && length > 0 ? Buffer.allocUnsafeSlow(length) : null
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of readChunks(stream, times.idleMs, Date.now() + times.wholeMs)) {
    if (whole) chunk.copy(whole, bytes)
    bytes += chunk.length
    if (bytes > maxReadBytes) throw tooLarge(max)
    if (bytes > max) chunks.length = 0
    else if (isStored && !whole) {
      request.bodyMemory.raiseTo(bytes)
      chunks.push(chunk)
    }
  }
  if (bytes > max) throw tooLarge(max)
  return whole?.subarray(0, bytes) ?? Buffer.concat(chunks)
}

/** The chunks of a stream; leaving it early does not destroy it, since a response is still to be sent. */
async function* readChunks(stream: HeldRequest, idleMs: number, endsAt: number): AsyncGenerator<Buffer> {
  stream.askForBody?.()
  stream.askForBody = undefined
  const chunks = stream.iterator({ destroyOnReturn: false })
  let isStalled = false
  try {
    for (;;) {
      const next = chunks.next()
      const leftMs = endsAt - Date.now()
      isStalled = !(await settlesWithin(next, Math.min(idleMs, leftMs)))
      if (isStalled) throw tooSlow(idleMs, leftMs)
      const { done, value } = await next.catch(() => {
        throw new HttpError('malformed_request', 'the body did not arrive whole')
      })
      if (done) return
      yield value
    }
  } finally {
    // this would wait for the chunk that does not come
    if (!isStalled) await chunks.return?.()
  }
}

const tooSlow = (idleMs: number, leftMs: number): HttpError => {
  const isIdle = idleMs < leftMs
  const problem = isIdle
    ? `no byte of the body arrived for ${idleMs / 1000} s`
    : 'the body did not arrive in time'
  const remedy = `${isIdle ? 'send the body without pauses; a' : 'send a'} large file by POST /v1/files`
  return new HttpError('request_timeout', problem, { remedy })
}

const tooLarge = (max: number): MasonError =>
  new MasonError('payload_too_large', `the body is larger than ${max / 1024 ** 2} MiB`, {
    remedy: 'send less; a run takes large files by POST /v1/files, or by a mapping',
  })

/**
 * The JSON of a request's body; `{}` for an empty one where that is allowed. A large one is read in steps. Throws 400,
 * 415, or 422 for excessive JSON.
 */
export const parseJsonBody = async (
  request: FastifyRequest,
  {
    bodyOptional = false,
    maxValues = maxJsonValues,
    passesNumbers = false,
  }: Pick<RouteDoc, 'bodyOptional' | 'maxValues' | 'passesNumbers'>,
  step: Step,
): Promise<unknown> => {
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  if (bytes.length === 0 && bodyOptional) return {}
  if (bytes.length === 0) throw malformed('the body is empty')
  checkContentType(request.headers)
  const text = await decode(bytes, step)
  const scan = scanJson(text, { ...max, values: maxValues }, decodedBytes)
  let scanned = await step(() => scan.next())
  while (!scanned.done) scanned = await step(() => scan.next())
  const size = scanned.value
  const excess = findExcess(size, maxValues)
  if (excess)
    throw createFieldsError({ pointer: '', detail: `${excess}, a fixed limit; send large data as a file` })
  const value = await step(() => parse(text))
  // also where it is written with escapes
  const errors = await step(() => (/__proto__|\\u/.test(text) ? findPrototypeKeys(value) : []))
  if (errors.length > 0) throw createFieldsError(...errors)
  const quoted = passesNumbers === true ? text : await step(() => quoteNumbers(text, size.long))
  if (quoted === text) return value
  const exact = await step(() => JSON.parse(quoted))
  if (typeof passesNumbers === 'string' && Object.hasOwn(value ?? {}, passesNumbers))
    Object.assign(exact, { [passesNumbers]: value[passesNumbers] })
  return exact
}

const malformed = (message: string): MasonError =>
  new MasonError('malformed_json', message, { remedy: 'send one JSON object in UTF-8' })

const checkContentType = (headers: IncomingMessage['headers']): void => {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const charset = parameters.map((part) => part.trim()).find((part) => part.startsWith('charset='))
  const encoding = (headers['content-encoding'] || 'identity').toLowerCase()
  const remedy = 'send "content-type: application/json", UTF-8, not compressed'
  if (!/^application\/([\w.+-]+\+)?json$/.test(type.trim()))
    throw new HttpError('unsupported_media_type', `the content-type is "${type.trim()}"`, { remedy })
  if (charset && !/^charset="?utf-?8"?$/.test(charset))
    throw new HttpError('unsupported_media_type', 'the charset is not UTF-8', { remedy })
  if (encoding !== 'identity')
    throw new HttpError('unsupported_media_type', 'the body is compressed', { remedy })
}

/** So many bytes are decoded in one step, and so many characters looked at. */
const decodedBytes = 2 * 1024 * 1024

const decode = async (bytes: Buffer, step: Step): Promise<string> => {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  try {
    for (let at = 0; at < bytes.length; at += decodedBytes)
      text += await step(() => decoder.decode(bytes.subarray(at, at + decodedBytes), { stream: true }))
    return text + decoder.decode()
  } catch {
    throw malformed('the body is not UTF-8')
  }
}

const parse = (text: string) => {
  try {
    return JSON.parse(text)
  } catch (error) {
    // where parsing stopped, without quoting the body
    const [position] = / position \d+/.exec((error as Error).message) ?? []
    throw malformed(`the body is not JSON${position ? ` from${position} on` : ''}`)
  }
}

/** Up to 100 fields named `__proto__`, which zod would drop silently. `constructor` is an unknown field like any other. */
const findPrototypeKeys = (value: unknown, pointer = '', errors: FieldError[] = []): FieldError[] => {
  if (value === null || typeof value !== 'object' || errors.length >= 100) return errors
  for (const [key, item] of Object.entries(value)) {
    const field = pointer + toPointer([key])
    if (key === '__proto__') errors.push({ pointer: field, detail: 'a field cannot have this name' })
    findPrototypeKeys(item, field, errors)
  }
  return errors
}

/** `nameLength`: from 16,384 characters on, all names of one length have one hash, and are compared with each other. */
const max = { depth: 100, names: 10_000, nameLength: 10_000 }

/** Names what makes JSON too costly to parse and validate, before anything is built from it, or returns null. */
const findExcess = ({ values, numbers, depth, names }: JsonSize, maxValues: number): string | null => {
  if (depth > max.depth) return `nested deeper than ${max.depth} levels`
  if (names === Infinity) return `a field name of more than ${max.nameLength} characters`
  if (names > max.names) return `more than ${max.names} different field names`
  return values + numbers > maxValues ? `more than ${maxValues} values` : null
}

const maxDiscardMs = 500
const maxDiscardBytes = 1024 * 1024

/**
 * Reads the rest of a body that no handler read (401, 404, 405 …), within limits, before the response is sent: closing a
 * connection with unread bytes resets it, and the reset overtakes the response.
 */
export const discardUnreadBody = (request: IncomingMessage & HeldRequest): Promise<void> =>
  new Promise((resolve) => {
    // an injected request has neither this field nor a connection
    if (request.complete !== false || request.destroyed || request.askForBody) return resolve()
    let bytes = 0
    const count = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > maxDiscardBytes) end()
    }
    const end = (): void => {
      clearTimeout(timer)
      request.off('data', count).off('end', end).off('close', end)
      resolve()
    }
    const timer = setTimeout(end, maxDiscardMs)
    request.on('data', count).once('end', end).once('close', end)
  })
