import { expect, test } from 'vitest'
import { openSignedJob } from '../../../src/features/intake/job-signatures.ts'
import { signJob } from '../../../src/infra/queue/signed-jobs.ts'

const [secret, previous, other] = ['current', 'previous', 'another'].map((name) => name.padEnd(32, '-')) as [
  string,
  string,
  string,
]
const data = { prompt: 'hello', user_id: 'u1', business_id: 'a' }
const now = new Date('2026-01-02T00:00:00Z')
const hoursAgo = (hours: number) => new Date(now.getTime() - hours * 3_600_000)
const open = (id: string, job: unknown, secrets = [secret, previous]) => openSignedJob(id, job, secrets, now)

test('a job signed with the current or the previous secret opens as its data', () => {
  expect(open('id', signJob('id', data, secret, now))).toEqual({ data })
  expect(open('id', signJob('id', data, previous, hoursAgo(23)))).toEqual({ data })
})

test('the signature is an HMAC-SHA-256 that any language can make', () => {
  expect(signJob('id', { a: 1 }, 'secret', new Date(1000))).toEqual({
    payload: '{"a":1}',
    // printf '1.2.id.{"a":1}' | openssl dgst -sha256 -hmac secret
    signature: 't=1,v1=684f28ecff0e3e8becbe35e79e55aa898a06c8f69dc995beea5db064a434afb7',
  })
})

const signed = signJob('id', data, secret, now)
test.each([
  ['not signed', 'id', data, /not signed.*MASON_QUEUE_SECRET/],
  ['signed with another secret', 'id', signJob('id', data, other, now), /does not fit/],
  ['of another business', 'id', { ...signed, payload: signed.payload.replace('"a"', '"b"') }, /does not fit/],
  ['sent again under another id', 'id2', signed, /does not fit/],
  ['with part of its id in the payload', 'i', { ...signed, payload: `d.${signed.payload}` }, /does not fit/],
  [
    'signed at another time',
    'id',
    { ...signed, signature: signed.signature.replace('t=1', 't=2') },
    /does not fit/,
  ],
  ['with half a signature', 'id', { ...signed, signature: signed.signature.slice(0, -2) }, /64 hex digits/],
  ['with a further field', 'id', { ...signed, business_id: 'b' }, /not signed/],
  ['signed long ago', 'id', signJob('id', data, secret, hoursAgo(25)), /24 hours ago/],
  ['signed in the future', 'id', signJob('id', data, secret, hoursAgo(-1)), /in the future/],
  ['null', 'id', null, /not signed/],
])('a job that is %s is refused and says why', (_what, id, job, error) => {
  expect(open(id, job)).toEqual({ error: expect.stringMatching(error) })
})

test('without a secret jobs need no signature, and one is no obstacle', () => {
  expect(open('id', data, [])).toEqual({ data })
  expect(open('id', signJob('id', data, other, now), [])).toEqual({ data })
})
