import { expect, test } from 'vitest'
import { openRuntimeFeatures } from '../../src/app/open-runtime-features.ts'
import { readConfig } from '../../src/app/read-config.ts'

test('without a feature that sends webhooks, a request with an address for them is refused', async () => {
  const parts = { sources: [], config: readConfig({}, { role: 'serve' }), layer: {} }
  const { checkWebhookAddress } = await openRuntimeFeatures(parts as never)
  await expect(checkWebhookAddress('shop', 'https://shop.example', 'webhook_url')).rejects.toMatchObject({
    code: 'invalid_request',
    detail: { errors: [{ pointer: '/webhook_url', detail: 'this server sends no webhooks; omit it' }] },
  })
})
