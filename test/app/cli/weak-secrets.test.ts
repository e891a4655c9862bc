import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { listWeakSecrets } from '../../../src/app/cli/weak-secrets.ts'

const strong = { adminToken: randomBytes(24).toString('hex'), masterKey: randomBytes(32).toString('base64') }
const toKey = (bytes: readonly number[]) => Buffer.from(bytes).toString('base64')

test('random secrets are not called weak, however often they are made', () => {
  for (let time = 0; time < 2000; time++) {
    const made = {
      adminToken: randomBytes(12).toString('hex'),
      masterKey: randomBytes(32).toString('base64'),
    }
    expect([made, listWeakSecrets(made)]).toEqual([made, []])
  }
  expect(listWeakSecrets({ adminToken: null, masterKey: null })).toEqual([])
})

test.each([
  ['a short admin token', { ...strong, adminToken: 'letmein' }, /MASON_ADMIN_TOKEN has 7 characters/],
  ['one letter again and again', { ...strong, adminToken: 'a'.repeat(40) }, /MASON_ADMIN_TOKEN repeats/],
  ['a master key of zeros', { ...strong, masterKey: toKey(Array(32).fill(0)) }, /MASON_MASTER_KEY repeats/],
  [
    'a master key that counts',
    { ...strong, masterKey: toKey([...Array(32).keys()]) },
    /MASON_MASTER_KEY repeats/,
  ],
  [
    'a pass phrase as master key',
    { ...strong, masterKey: Buffer.from('the quick brown fox jumps over a').toString('base64') },
    /MASON_MASTER_KEY is a text/,
  ],
])('%s is named, with the command for a good one and without its value', (_what, secrets, problem) => {
  const weak = listWeakSecrets(secrets)
  expect(weak).toEqual([
    { problem: expect.stringMatching(problem), remedy: expect.stringContaining('node -p') },
  ])
  expect(JSON.stringify(weak)).not.toContain(secrets.adminToken)
  expect(JSON.stringify(weak)).not.toContain(secrets.masterKey)
})
