import { isJsonObject } from '../../infra/lib/json-text.ts'
import { readBodyWaitMs } from './stated-waits.ts'

/**
 * A server's description of its error. `names`: its codes and types, joined. `waitMs`: the wait that its body asks for.
 */
export type UpstreamError = { message?: string; names: string; status?: number; waitMs?: number }

type Fields = Record<string, unknown>

const toHttpStatus = (value: unknown): number | undefined => {
  const status = typeof value === 'string' || typeof value === 'number' ? Number(value) : Number.NaN
  return Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined
}

const maxMessageLength = 4000
const maxNamesLength = 1000

/** The start of a value's JSON; empty where it is nested too deeply. */
export const toJsonHead = (value: unknown, maxLength: number): string => {
  try {
    const cut = (_: string, item: unknown) => (typeof item === 'string' ? item.slice(0, maxLength) : item)
    return (JSON.stringify(value, cut) ?? '').slice(0, maxLength)
  } catch {
    return ''
  }
}

const messageFields =
  'message msg err error_msg error_message errorMessage Message status_msg detail title error'.split(' ')
const codeFields = 'code Code error_code errorCode error_type status_code statusCode __type'.split(' ')
const nameFields = [...codeFields, 'type', 'status', 'reason']
const statusFields = 'code status status_code statusCode http_status http_code httpCode'.split(' ')

const isWord = (value: unknown): value is string | number =>
  (typeof value === 'string' && value !== '') || typeof value === 'number'

const wrappers = 'error Error errors base_resp header ResponseMetadata response Response x_groq'.split(' ')

/**
 * The objects that describe an error, the innermost first: `{error}`, `{errors: [..]}`, MiniMax's `base_resp`, Spark's
 * `header`, Volcengine's `ResponseMetadata`, Tencent's `Response`, OpenAI's `response` of a failed one, Azure's `innererror`, Google's `details`,
 * or the body itself. Gemini's OpenAI-compatible endpoint wraps it into a list.
 */
const listDescriptions = (value: unknown, depth = 0): Fields[] => {
  const one = Array.isArray(value) ? value[0] : value
  if (!isJsonObject(one) || depth > 3) return []
  return [...wrappers.flatMap((name) => listDescriptions(one[name], depth + 1)), one]
}

const findValue = <Value>(
  descriptions: readonly Fields[],
  names: readonly string[],
  read: (value: unknown) => Value | undefined,
): Value | undefined => {
  for (const one of descriptions)
    for (const name of names) {
      const value = read(one[name])
      if (value !== undefined) return value
    }
  return undefined
}

const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** The words of the vendor behind a gateway, as OpenRouter passes them on. */
const readRawWords = (descriptions: readonly Fields[]): string | undefined => {
  const raw = findValue(descriptions, ['metadata'], (value) => (isJsonObject(value) ? value.raw : undefined))
  return raw === undefined ? undefined : typeof raw === 'string' ? raw : toJsonHead(raw, maxMessageLength)
}

/** Reads an error body or event of any shape; nothing in one that has neither words nor codes. */
export const readUpstreamError = (json: unknown): UpstreamError => {
  const descriptions = listDescriptions(json)
  if (descriptions.length === 0) return { names: '' }
  const listed = descriptions.flatMap(({ details, innererror }) =>
    [innererror, ...(Array.isArray(details) ? details : [])].filter(isJsonObject),
  )
  const names = [...descriptions, ...listed].flatMap((one) => nameFields.map((name) => one[name]))
  const own = findValue(descriptions, messageFields, readText)
  const raw = readRawWords(descriptions)
  // FastAPI's list of what is wrong with a request
  const message =
    own ??
    findValue(descriptions, ['detail'], (value) => (value ? toJsonHead(value, maxMessageLength) : undefined))
  const words = [message, raw].filter((part) => part !== undefined).join(': ')
  const status = findValue(descriptions, statusFields, toHttpStatus)
  const waitMs = readBodyWaitMs(json, words.slice(0, maxMessageLength))
  return {
    names: names.filter(isWord).join(' ').slice(0, maxNamesLength),
    ...(words !== '' && { message: words.slice(0, maxMessageLength) }),
    ...(status !== undefined && { status }),
    ...(waitMs !== undefined && { waitMs }),
  }
}

/** A code that says that all is well. */
const isGood = (code: unknown): boolean =>
  code == null || ['', '0', '200', 'ok', 'success'].includes(String(code).toLowerCase())

/** The value of a member for errors; null where it, and all that is in it, is null, false, 0 or empty and so no error. */
export const readErrorValue = (value: unknown): unknown => {
  const isError = typeof value === 'object' && value ? Object.values(value).some(readErrorValue) : value
  return isError ? value : null
}

const isFilled = (list: unknown): boolean => Array.isArray(list) && list.length > 0

/** Whether a value has words of an error, at its top. */
export const hasErrorWords = (value: unknown): boolean =>
  isJsonObject(value) && messageFields.some((name) => readText(value[name]) !== undefined)

/**
 * The error that an event or a body of a 2xx is, in place of an answer; null: it is none. An answer has `choices` or
 * `data`, and no member `error` of any weight.
 */
export const findReportedError = (value: unknown): unknown => {
  const one: unknown = Array.isArray(value) ? value[0] : value
  if (!isJsonObject(one)) return null
  const { errors, base_resp, header, Response: part = one.x_groq, choices, data, status } = one
  const error = one.error ?? one.Error ?? (isJsonObject(part) ? (part.Error ?? part.error) : null)
  if (error && readErrorValue(error)) return value
  if (isFilled(choices) || isFilled(data)) return null
  const head = [base_resp, header].find(isJsonObject)
  if (head && !isGood(head.status_code ?? head.code)) return value
  if (isFilled(errors) || one.type === 'error' || one.object === 'error') return value
  const isFailed = one.success === false || /^(error|fail|[45]\d\d$)/i.test(String(status))
  const isCoded = codeFields.some((name) => isWord(one[name]) && !isGood(one[name]))
  return (isCoded || isFailed) && hasErrorWords(one) ? value : null
}

/** Addresses and ids of the network are not for a business. */
const isPrivateWord = (word: string): boolean =>
  word.length > 24 || /[@/\\]|\w[.:]\w|\w\.[a-z]{2,}/i.test(word)

/** The first words of an HTML page: its title, else its first heading, else its text. Undefined: it is no page. */
export const readPageWords = (text: string): string | undefined => {
  if (!/^\s*<(!doctype html|html|head|body)\b/i.test(text)) return undefined
  const head = text.slice(0, 4000)
  const [, named = ''] = /<(?:title|h1)[^>]{0,200}>([^<]{1,300})</i.exec(head) ?? []
  const body = head.replace(/<(style|script)\b[\s\S]*?(<\/\1>|$)/gi, ' ')
  const words = excerpt(named.trim() === '' ? body : named).split(' ')
  const plain = words.map((word) => (isPrivateWord(word) ? '…' : word)).join(' ')
  return plain.length > maxPageWords ? `${plain.slice(0, maxPageWords - 1).toWellFormed()}…` : plain
}
const maxPageWords = 80

/** At most 300 characters of a server's words, on one line, without markup. */
export const excerpt = (text: string): string => {
  const plain = text
    .slice(0, 4000)
    .replace(/<[^<>]*>/g, ' ')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be removed
    .replace(/[\s\u0000-\u001f\u007f]+/g, ' ')
    .trim()
    .toWellFormed()
  return plain.length > 300 ? `${plain.slice(0, 299).toWellFormed()}…` : plain
}
