import { createHash, createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { toScramVerifier } from '../../../src/infra/database/process-logins.ts'

test('the password of a login is sent to PostgreSQL as the verifier of RFC 7677, which its example proves', () => {
  // the exchange of section 3
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')
  const nonce = 'rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0'
  const message = `n=user,r=rOprNGfwEbeRWgbNEkqO,r=${nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=${nonce}`
  const proof = Buffer.from('dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=', 'base64')

  const [kind, rounds, keys = ''] = toScramVerifier('pencil', salt).split('$')
  expect([kind, rounds]).toEqual(['SCRAM-SHA-256', '4096:W22ZaJ0SNY7soEsUEjb6gQ=='])
  const [storedKey = '', serverKey = ''] = keys.split(':')
  const sign = (key: string) => createHmac('sha256', Buffer.from(key, 'base64')).update(message).digest()
  const clientKey = sign(storedKey).map((byte, at) => byte ^ (proof[at] ?? 0))
  expect(createHash('sha256').update(clientKey).digest('base64')).toBe(storedKey)
  expect(sign(serverKey).toString('base64')).toBe('6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=')
})
