import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createLog, createNoteLog } from '../../../src/app/cli/log.ts'
import { addSettingSecrets } from '../../../src/app/setting-secrets.ts'
import { openSealedText, sealText } from '../../../src/infra/secrets/envelope.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { isPublicHeader, listHeaderSecrets } from '../../../src/infra/secrets/redaction.ts'
import { createScrubbedLog, scrubValue } from '../../../src/infra/secrets/scrubbed-log.ts'
import { createScrubber } from '../../../src/infra/secrets/scrubber.ts'
import { Secret } from '../../../src/infra/secrets/secret.ts'
import { MasonError } from '../../../src/state/errors.ts'
import { baseConfig } from '../../support/backend.ts'

const canary = 'sk-nightjar"\\/+?0123456789'
const scrubber = createScrubber()
scrubber.add(canary)

/** A logger whose lines are kept in place of being shown. */
const listen = (isTTY: boolean) => {
  const lines: string[] = []
  const err = { isTTY, write: (line: string) => lines.push(line) } as unknown as NodeJS.WriteStream
  return { log: createLog('debug', err, scrubber), lines }
}

/** Everything that can be put into a log, with the canary somewhere in it. */
const records = (): Record<string, unknown>[] => {
  const cause = new Error(`401 for Bearer ${canary}`)
  const error = new MasonError('model_unauthorized', `refused: ${canary}`, {
    remedy: `use another than ${canary}`,
    detail: { sent: { authorization: `Bearer ${canary}` }, list: [[canary]] },
    cause: new AggregateError([cause], 'all failed', { cause }),
  })
  const circle: Record<string, unknown> = { value: canary }
  circle.self = circle
  return [
    { error },
    { err: error, req: { headers: { [canary]: canary } } },
    { error: String(error), stack: error.stack },
    { circle },
    { raw: JSON.stringify({ raw: JSON.stringify({ value: canary }) }) },
    {
      url: `https://h/?key=${encodeURIComponent(canary)}`,
      basic: Buffer.from(`u:${canary}`).toString('base64'),
    },
    { secret: new Secret(canary) },
    {
      nested: { deep: { deeper: [{ value: [canary] }] } },
      at: new Date(0),
      map: new Map([[canary, canary]]),
    },
  ]
}
/** Its middle as it is and as base64, after 0, 1 or 2 bytes of something else. */
const held = new RegExp(
  ['', 'x', 'xx'].reduce(
    (all, before) => `${all}|${Buffer.from(`${before}nightjar`).toString('base64').slice(4, 10)}`,
    'nightjar|0123456789',
  ),
)

describe('a secret', () => {
  test('that is opened is printed only on request', () => {
    const keys = createMasterKeys(baseConfig.masterKey)
    const place = { purpose: 'secret', vendor_id: 'v', row_id: 'k' } as const
    const row = sealText(canary, place, keys)
    const secret = openSealedText(row, place, keys)
    expect(secret.reveal()).toBe(canary)
    const error = new Error(`no ${secret}`, { cause: { secret, row } })
    const shown = [
      String(secret),
      `${secret}`,
      JSON.stringify({ secret, row }),
      inspect({ secret, row, keys }, { depth: 9, showHidden: true }),
      inspect(error, { depth: 9, showHidden: true }),
      JSON.stringify(Object.getOwnPropertyDescriptors(secret)),
    ].join('\n')
    expect(shown).not.toMatch(held)
  })

  test.each([true, false])(
    'is in no line of the log (terminal: %s), and lines of JSON stay JSON',
    (isTTY) => {
      for (const data of records()) {
        const { log, lines } = listen(isTTY)
        log.error(data, `with ${canary}`)
        log.child({ value: canary }).warn(data, canary)
        expect(lines.join('')).toContain('[secret]')
        expect(lines.join('')).not.toMatch(held)
        if (!isTTY) for (const line of lines) expect(JSON.parse(line)).toMatchObject({ pid: process.pid })
      }
    },
  )

  test('is in no recorded command', () => {
    const notes: string[] = []
    const log = createNoteLog('debug', (line) => notes.push(line), scrubber)
    for (const data of records()) log.warn(data, canary)
    expect(notes).toHaveLength(records().length)
    expect(notes.join()).not.toMatch(held)
  })

  test('does not reach the log behind a scrubbed one', () => {
    const seen: unknown[] = []
    const take = (data: unknown, message: string): void => void seen.push(data, message)
    const log = createScrubbedLog({ debug: take, info: take, warn: take, error: take }, scrubber)
    for (const level of ['debug', 'info', 'warn', 'error'] as const)
      for (const data of records()) log[level](data, `at ${canary}`)
    expect(inspect(seen, { depth: 20, showHidden: true })).not.toMatch(held)
  })

  test('of digits only leaves lines of JSON what they are', () => {
    const digits = createScrubber()
    digits.add('123456')
    const lines: string[] = []
    const err = { isTTY: false, write: (line: string) => lines.push(line) } as unknown as NodeJS.WriteStream
    createLog('info', err, digits).info({ id: 99_123_456, text: '123456' }, 'it is 123456')
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      id: '99[secret]',
      text: '[secret]',
      msg: 'it is [secret]',
    })
  })
})

describe('what holds no secret', () => {
  test('is the same object again', () => {
    const data = { error: new Error('no'), list: [1, 'two', { three: null }], at: new Date(0) }
    expect(scrubValue(data, scrubber)).toBe(data)
  })
  test('keeps errors errors where something beside them differs', () => {
    const error = new MasonError('internal', 'plain', { cause: new Error(canary) })
    const clean = scrubValue({ error }, scrubber).error
    expect(clean).toBeInstanceOf(MasonError)
    expect(clean).toMatchObject({ code: 'internal', message: 'plain', cause: { message: '[secret]' } })
    expect(error.cause).toMatchObject({ message: canary })
  })
})

describe('what may be kept of a request', () => {
  test.each([
    ['Authorization', false],
    ['x-api-key', false],
    ['Cookie', false],
    ['Content-Type', true],
    ['x-ratelimit-remaining-tokens', true],
    ['x-request-id', true],
    ['x-goog-api-key', false],
  ])('has the value of the header %s: %s', (name, isPublic) => {
    expect(isPublicHeader(name)).toBe(isPublic)
  })

  test('is nothing of what an endpoint adds by itself, other than schemes and the place of the key', () => {
    expect(
      listHeaderSecrets({
        Authorization: 'Bearer abcdefgh',
        'X-Key': '{{key}}',
        'X-Pair': 'tenant-7:{{key}}',
        'anthropic-version': '2023-06-01',
      }),
    ).toEqual(['abcdefgh', 'tenant-7:'])
  })
})

test('the secrets of the settings are removed, passwords also as they are sent', () => {
  const known = createScrubber()
  addSettingSecrets(
    {
      ...baseConfig,
      adminToken: 'admin-canary',
      previousMasterKeys: ['previous-canary'],
      database: { kind: 'postgres', url: 'postgres://mason:pass%2Fcanary@h/db' },
      redisUrl: 'redis://:redis-canary@h',
      openai: { apiKey: 'sk-canary', baseUrl: null, model: 'm', embeddingModel: 'e' },
      client: { url: null, token: 'client-canary' },
    },
    known,
  )
  const text = `admin-canary previous-canary pass%2Fcanary pass/canary redis-canary sk-canary client-canary ${baseConfig.masterKey}`
  expect(known.text(text)).toBe('[secret] [secret] [secret] [secret] [secret] [secret] [secret] [secret]')
  const plain = createScrubber()
  addSettingSecrets(
    { ...baseConfig, database: { kind: 'postgres', url: 'postgres://mason1:mason1@h' }, redisUrl: null },
    plain,
  )
  expect(plain.text('mason1')).toBe('mason1')
})
