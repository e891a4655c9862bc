import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { JsonNumber, readJson } from '../json.ts'
import { TokenError } from './token-error.ts'

/** A token of more characters is refused before it is read. */
export const maxTokenLength = 256 * 1024

/** A JSON object as it was read; nothing is known of its members. */
export type JsonObject = Record<string, unknown>

/** The SHA-256 of a text in UTF-8, in base64url: every hash of AP2. */
export const hashText = (text: string): string => hash('sha256', text, 'base64url')

/** The bytes of a base64url text. Texts that two readers could read differently (padding, loose bits) are refused. */
export const decodeBase64Url = (text: string, field: string): Buffer => {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text)
    throw new TokenError('malformed_base64url', field, 'is not base64url without padding: encode it again')
  return bytes
}

/** The JSON value of a base64url text in UTF-8. */
export const decodeJson = (text: string, field: string): unknown => {
  const bytes = decodeBase64Url(text, field)
  if (!isUtf8(bytes)) throw new TokenError('malformed_utf8', field, 'is not UTF-8: encode it again')
  try {
    return readJson(bytes.toString())
  } catch (error) {
    const reason = (error as Error).message.slice(0, 200)
    throw new TokenError('malformed_json', field, `is no JSON that can be read: correct it (${reason})`)
  }
}

/** A JSON value as a message may show it. Members such as `toString` make String() throw. */
export const toShortText = (value: unknown): string =>
  (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'missing')).slice(0, 100)

/** Whether a JSON value is an object. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)

/** Refuses a token that is too long to be read. */
export const checkLength = (text: string, field: string): void => {
  if (text.length > maxTokenLength)
    throw new TokenError(
      'token_too_large',
      field,
      `has ${text.length} characters: send at most ${maxTokenLength}`,
    )
}
