import { expect, test } from 'vitest'
import { createWebhookCheck } from '../../src/app/open-runtime-features.ts'

test('without a feature that sends webhooks, a request with an address for them is refused', async () => {
  await expect(
    createWebhookCheck(() => null)('shop', 'https://shop.example', 'webhook_url'),
  ).rejects.toMatchObject({
    code: 'invalid_request',
    detail: { errors: [{ pointer: '/webhook_url', detail: 'this server sends no webhooks; omit it' }] },
  })
})
