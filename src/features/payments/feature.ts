import { z } from 'zod'
import { type ExecutorSettings, findSharedUser, isServed } from '../../infra/config/role-settings.ts'
import { databaseAddress, key32, listOfKeys32, masterKeyCommand } from '../../infra/config/settings.ts'
import { defineFeature } from '../definitions.ts'

const url = 'MASON_PAYMENT_DATABASE_URL'
const key = 'MASON_PAYMENT_KEY'
const previousKeys = 'MASON_PREVIOUS_PAYMENT_KEYS'

const settings = z.object({
  [url]: databaseAddress().optional(),
  [key]: key32().optional(),
  [previousKeys]: listOfKeys32(),
})

const needs = (setting: string, why: string): ExecutorSettings['rules'][number] => ({
  roles: ['payments'],
  setting,
  problem: (raw) => raw[url] !== undefined && raw[setting] === undefined && `is missing: ${why}`,
})

/** What the executor has alone. */
const executor: ExecutorSettings = {
  names: { url, key, previousKeys },
  schema: settings,
  readBy: { payments: settings.keyof().options, keys: settings.keyof().options, migrate: [url] },
  remedies: {
    [url]:
      'set it, for the executor of payments alone, to a login of its own, for example postgres://mason_pay:password@127.0.0.1:5432/mason; `mason migrate` creates it',
    [key]: `create one, and set it for the executor of payments alone: ${masterKeyCommand}`,
    [previousKeys]: `copy the earlier values of ${key} again, separated by commas`,
  },
  rules: [
    {
      roles: ['payments'],
      setting: url,
      problem(raw) {
        const own = raw[url]
        if (own === undefined && isServed(raw))
          return 'is missing: the executor of payments never uses the login of another process'
        if (own === undefined)
          return 'is missing: without a database server the executor runs inside `mason serve`, not in a process of its own'
        const name = findSharedUser(raw, own) ?? false
        return name && `names the user of ${name}: the executor needs a login that no other process has`
      },
    },
    needs('MASON_PUBLIC_URL', 'mandates are made for this address, and receipts are signed as it'),
    needs(key, 'it encrypts the private keys of the executor in the database'),
    {
      roles: ['serve', 'api', 'payments', 'keys'],
      setting: key,
      problem: (raw) =>
        raw[key] !== undefined &&
        raw[key] === raw.MASON_MASTER_KEY &&
        'is the same as MASON_MASTER_KEY, which API and workers have',
    },
  ],
}

export default defineFeature({
  id: 'payments',
  settings,
  executor,
  tables: [
    'consent_links',
    'consents',
    'mandate_spend',
    'mandates',
    'open_mandates',
    'passkeys',
    'payment_events',
    'payment_inbox',
    'payment_keys',
    'payment_nonces',
    'payment_operations',
    'payment_orders',
    'payment_providers',
    'payments',
    'trusted_keys',
  ],
})
