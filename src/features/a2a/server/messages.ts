import type { Message } from '@a2a-js/sdk'
import { checkUrl } from '../../../infra/egress/urls.ts'
import { sha256 } from '../../../infra/lib/ids.ts'
import { isJsonObject, isStorableId, parseJsonOrText } from '../../../infra/lib/json-text.ts'
import { toFieldErrors } from '../../../state/resource-schema.ts'
import { type RunRequest, runRequestSchema } from '../../../state/run-request.ts'
import type { RunView } from '../../../state/run-view.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { hashLarge } from '../../../state/text/content-hash.ts'
import { nextTurn } from '../../../state/text/next-turn.ts'
import { malformed } from './errors.ts'

const maxIdChars = 255
const maxParts = 100
const idCharacters = 'without U+0000, U+FFFD and halves of surrogate pairs'
/** By name or number, as JSON of protobuf has them. */
const roles: readonly unknown[] = ['ROLE_USER', 'ROLE_AGENT', 1, 2]
const contents = { '1.0': ['text', 'raw', 'url', 'data'], '0.3': ['text', 'file', 'data'] } as const

/** In either alphabet, also in lines. The SDK drops what is not of it. Spaces go first: one pattern for both takes the square of their number. */
const isBase64 = (value: unknown): boolean =>
  typeof value === 'string' && /^[\w+/-]*={0,2}$/.test(/\s/.test(value) ? value.replace(/\s+/g, '') : value)

/** Any JSON, in which null is a value. */
const freeMembers: readonly string[] = ['data', 'metadata']
/** What a caller sent without the members that are null: in JSON of protobuf, and of the samples, they are absent ones. The SDK takes some for values. */
export const omitNullMembers = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(omitNullMembers)
  if (!isJsonObject(value)) return value
  const members = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(
    members.map(([name, member]) => [name, freeMembers.includes(name) ? member : omitNullMembers(member)]),
  )
}

/** What is wrong with the content of a part, by its name; null: nothing. */
const findContentProblem = (name: string, value: unknown, version: keyof typeof contents): string | null => {
  switch (name) {
    case 'text':
      // the SDK makes a text of a number
      return typeof value === 'string' && value.trim() !== '' ? null : 'must be a text that is not blank'
    case 'raw':
      return isBase64(value) ? null : 'must be base64'
    case 'data':
      return version === '1.0' || isJsonObject(value) ? null : 'must be an object'
    case 'file': {
      const [source, ...others] = isJsonObject(value) ? ['bytes', 'uri'].filter((one) => one in value) : []
      if (source === undefined || others.length > 0) return 'must have exactly one of bytes and uri'
      const { bytes, uri, name, mimeType } = value as Record<string, unknown>
      if ([uri, name, mimeType].some((one) => one !== undefined && typeof one !== 'string'))
        return 'must have texts as its uri, name and mimeType'
      return source === 'uri' || isBase64(bytes) ? null : 'must have base64 as its bytes'
    }
    default:
      return null
  }
}

/** What is wrong with a part, to follow its name; null: nothing. The SDK takes one content of a part and drops the others. */
const findPartProblem = (part: unknown, version: keyof typeof contents): string | null => {
  const fields = isJsonObject(part) ? part : {}
  const [name, ...others] = contents[version].filter((one) => fields[one] !== undefined)
  if (name === undefined || others.length > 0)
    return ` has ${[name, ...others].join(' and ') || 'no content'}; a part has exactly one of ${contents[version].join(', ')}`
  const { kind = name } = fields
  if (version === '0.3' && kind !== name) return `.kind must be "${name}", which is what the part has`
  const problem = findContentProblem(name, fields[name], version)
  return problem && `.${name} ${problem}`
}

/** Throws where a message is invalid as it came: the SDK reads more than the protocol allows. `version` is that of the wire. */
export const checkMessage = (params: unknown, version: keyof typeof contents): void => {
  const { message, configuration, metadata } = (params ?? {}) as Record<string, unknown>
  if (!isJsonObject(message)) throw malformed('message is required')
  for (const [name, value] of Object.entries({
    configuration,
    metadata,
    'message.metadata': message.metadata,
  }))
    if (value != null && !isJsonObject(value)) throw malformed(`${name} must be an object`)
  for (const field of ['messageId', 'contextId', 'taskId'] as const) {
    const id = message[field]
    if (id === undefined || id === '') {
      if (field === 'messageId') throw malformed('message.messageId is required')
    } else if (typeof id !== 'string' || id.length > maxIdChars || !isStorableId(id))
      throw malformed(`message.${field} must be a text of at most ${maxIdChars} characters, ${idCharacters}`)
  }
  for (const field of ['referenceTaskIds', 'extensions'] as const) {
    const { [field]: list = [] } = message
    if (!Array.isArray(list) || list.some((one) => typeof one !== 'string'))
      throw malformed(`message.${field} must be a list of texts`)
  }
  const { parts, role } = message
  if (version === '1.0' && !roles.includes(role))
    throw malformed('message.role must be ROLE_USER or ROLE_AGENT')
  if (!Array.isArray(parts) || parts.length === 0) throw malformed('message.parts must be a list with a part')
  if (parts.length > maxParts)
    throw malformed(`message.parts has ${parts.length} parts; send at most ${maxParts}`)
  for (const [at, part] of parts.entries()) {
    const problem = findPartProblem(part, version)
    if (problem !== null) throw malformed(`message.parts[${at}]${problem}`)
  }
}

/** The session of a context of a caller: context ids are free text, and those of two callers may be the same. */
export const toSessionId = (caller: string, contextId: string): string =>
  `a2a_${sha256(JSON.stringify([caller, contextId])).slice(0, 40)}`

/** The user that a caller's runs are for. */
export const toUserId = (caller: string): string => `a2a:${caller}`

/**
 * The idempotency key of a message of a caller, by its id and its content: one that is sent again is found, whatever its metadata,
 * and the same id with other parts is another message.
 */
export const toMessageKey = async (
  caller: string,
  { messageId, taskId, parts }: Pick<Message, 'messageId' | 'taskId' | 'parts'>,
): Promise<string> => {
  const contents = parts.map(({ content, filename, mediaType }) => [
    content?.$case,
    content?.$case === 'raw' ? content.value.toString('base64') : content?.value,
    filename,
    mediaType,
  ])
  return `a2a ${await hashLarge(JSON.stringify([caller, messageId, taskId, contents]))}`
}

/** Metadata of runs that other agents started. */
const fields = {
  context: 'a2a.context_id',
  message: 'a2a.message_id',
  extensions: 'a2a.extensions',
  /** Its parts in their order, where it has data: `text`, or the SHA-256 of the JSON. */
  parts: 'a2a.parts',
} as const

/** What a run keeps of its message. Null where no agent of this caller started it. */
export const readOrigin = (
  { metadata, session_id }: Pick<RunView, 'metadata' | 'session_id'>,
  caller: string,
): { contextId: string; messageId: string; parts: string[] } | null => {
  const contextId = metadata[fields.context]
  if (typeof contextId !== 'string' || session_id !== toSessionId(caller, contextId)) return null
  const parts = String(metadata[fields.parts] ?? 'text').split(' ')
  return { contextId, messageId: String(metadata[fields.message]), parts }
}

const readTexts = ({ parts }: Message): string =>
  parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n\n')

const readData = ({ parts }: Message): Json[] =>
  parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as Json] : []))

const toFileName = (at: number, name: string): string =>
  `${at + 1}-${name.replace(/[^\w.-]/g, '_').slice(0, 100)}`

/**
 * Each part that is no text is a file of the run, so that its bytes are stored with the opening action; `listed`: see
 * `fields.parts`. The texts are one, which is the prompt; equal data stay as often as they were sent.
 */
const readParts = async ({ parts }: Message) => {
  const files: NonNullable<RunRequest['files']> = []
  const listed: string[] = []
  for (const [at, { content, filename, mediaType }] of parts.entries()) {
    const type = mediaType || 'application/octet-stream'
    const name = toFileName(at, filename || 'file')
    if (content?.$case === 'text' && !listed.includes('text')) listed.push('text')
    if (content?.$case === 'raw') files.push({ name, type, content_base64: content.value.toString('base64') })
    if (content?.$case === 'url') {
      const problem = checkUrl(content.value, { allowPrivate: false })
      if (problem) throw malformed(`message.parts[${at}].url ${problem.detail}`)
      files.push({ name, type, url: content.value })
    }
    if (content?.$case !== 'data') continue
    await nextTurn()
    const [key = 'data'] = isJsonObject(content.value) ? Object.keys(content.value) : []
    const bytes = Buffer.from(JSON.stringify(content.value))
    const content_base64 = bytes.toString('base64')
    files.push({ name: toFileName(at, `${key}.json`), type: 'application/json', content_base64 })
    listed.push(await hashLarge(bytes))
  }
  if (files.length > 0) await nextTurn()
  return { files, listed: listed.join(' ') }
}

/** The run that a message asks for; `key`: see `toMessageKey`. Without a context id, it is one that the same message always gets. */
export const toRunRequest = async (
  message: Message,
  {
    caller,
    key,
    scenario,
    extensions,
  }: { caller: string; key: string; scenario?: string | undefined; extensions: readonly string[] },
): Promise<RunRequest> => {
  const { files, listed } = await readParts(message)
  const data = readData(message)
  const keys = data.flatMap((one) => (isJsonObject(one) ? Object.keys(one) : []))
  const prompt = readTexts(message) || keys.join(', ') || files.map(({ name }) => name).join(', ')
  const contextId = message.contextId || `ctx_${sha256(key).slice(0, 32)}`
  const request = {
    prompt,
    user_id: toUserId(caller),
    session_id: toSessionId(caller, contextId),
    ...(files.length > 0 && { files }),
    ...(scenario !== undefined && { scenario }),
    metadata: {
      [fields.context]: contextId,
      [fields.message]: message.messageId,
      ...(extensions.length > 0 && { [fields.extensions]: extensions.join(' ') }),
      ...(data.length > 0 && { [fields.parts]: listed }),
    },
  }
  const parsed = runRequestSchema.safeParse(request)
  if (parsed.success) return parsed.data
  const [error] = toFieldErrors(parsed.error)
  throw malformed(`the message cannot be read: ${error?.pointer}: ${error?.detail}`)
}

/** What a message answers to an open question: the value that AP2 has for a challenge, else its data or its text. */
export const toAnswer = (message: Message, { schema }: NonNullable<RunView['input_request']>): Json => {
  const data: Record<string, Json> = Object.assign({}, ...readData(message).filter(isJsonObject))
  const { challenge_response: response } = data
  if (response !== undefined) return response
  const text = readTexts(message)
  if (schema.type === 'object' && Object.keys(data).length > 0) return data
  if (schema.type === undefined || schema.type === 'string') return text
  return parseJsonOrText(text) as Json
}
