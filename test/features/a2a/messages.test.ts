import { expect, test } from 'vitest'
import { checkMessage, omitNullMembers } from '../../../src/features/a2a/server/messages.ts'

const check =
  (message: Record<string, unknown>, version: '1.0' | '0.3' = '1.0') =>
  () =>
    checkMessage(
      omitNullMembers({
        message: { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hello' }], ...message },
      }),
      version,
    )

test.each(['messageId', 'contextId', 'taskId'])(
  'an id that the database would keep as another is refused: %s',
  (field) => {
    for (const id of ['a\0', 'a\ufffd', 'a\ud800', '\udc00a'])
      expect(check({ [field]: id })).toThrow(
        `message.${field} must be a text of at most 255 characters, without U+0000`,
      )
    for (const id of ['a', 'a b/ü', '\u{1f600}']) expect(check({ [field]: id })).not.toThrow()
  },
)

test('bytes that are no base64 are refused, in both versions', () => {
  for (const bytes of ['!!!', 'aGVsbG8=x', 7, '%PDF-1.7']) {
    expect(check({ parts: [{ raw: bytes }] })).toThrow('message.parts[0].raw must be base64')
    expect(check({ parts: [{ file: { bytes } }] }, '0.3')).toThrow(
      'message.parts[0].file must have base64 as its bytes',
    )
  }
  for (const bytes of ['aGVsbG8=', 'aGVsbG8', 'aGVs\nbG8=', '_-8'])
    expect(check({ parts: [{ raw: bytes }] })).not.toThrow()
  expect(check({ parts: [{ file: { uri: 'https://example.com/a' } }] }, '0.3')).not.toThrow()
})

test('a text that is a number or blank is refused', () => {
  for (const text of [5, ' \n', '', ['a']])
    expect(check({ parts: [{ text }] })).toThrow('message.parts[0].text must be a text that is not blank')
})

test('an address, name or media type of a file that is no text is refused', () => {
  const uri = 'https://example.com/a'
  for (const field of ['uri', 'name', 'mimeType']) {
    for (const value of [5, {}, ['a'], true])
      expect(check({ parts: [{ file: { uri, [field]: value } }] }, '0.3')).toThrow(
        'message.parts[0].file must have texts as its uri, name and mimeType',
      )
    for (const value of field === 'uri' ? ['a'] : ['a', '', null])
      expect(check({ parts: [{ file: { uri, [field]: value } }] }, '0.3')).not.toThrow()
  }
})

test('a member that is null is an absent one, but in data and metadata', () => {
  const data = { skus: null, list: [null, { a: null }] }
  const sent = {
    contextId: null,
    metadata: { a: null },
    parts: [{ text: null, data, file: null }, null],
    list: [],
  }
  expect(omitNullMembers(sent)).toEqual({ metadata: { a: null }, parts: [{ data }, null], list: [] })
  const part = (file: object) => check({ parts: [{ kind: 'file', file }] }, '0.3')
  expect(part({ bytes: null, uri: 'https://example.com/a', name: null, mimeType: null })).not.toThrow()
  expect(part({ bytes: 'aGk=', uri: null })).not.toThrow()
  expect(part({ bytes: null, uri: null })).toThrow('must have exactly one of bytes and uri')
  for (const name of ['contextId', 'taskId', 'referenceTaskIds', 'extensions', 'metadata'])
    expect(check({ [name]: null })).not.toThrow()
  for (const name of ['messageId', 'role', 'parts'])
    expect(check({ [name]: null })).toThrow(`message.${name}`)
})

test('a configuration or metadata that is no object is refused', () => {
  const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  for (const value of [[], 'x', 5, true]) {
    for (const name of ['configuration', 'metadata'])
      expect(() => checkMessage({ message, [name]: value }, '1.0')).toThrow(`${name} must be an object`)
    expect(check({ metadata: value }, '0.3')).toThrow('message.metadata must be an object')
  }
  for (const value of [null, undefined, {}])
    expect(() => checkMessage({ message, configuration: value, metadata: value }, '0.3')).not.toThrow()
})
