import { expect, test } from 'vitest'
import { computeRetryMs } from '../../../src/features/webhooks/delivery-queue.ts'
import { newWebhookSecret, signWebhook } from '../../../src/features/webhooks/signature.ts'

test('a webhook is signed as the library standardwebhooks 1.1.0 signs it, once for each secret', () => {
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' }
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
  expect(signWebhook(message, [secret])).toEqual({
    'webhook-id': message.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': signature,
  })
  const both = signWebhook(message, [newWebhookSecret(), secret])['webhook-signature']
  expect(both?.split(' ')).toEqual([expect.stringMatching(/^v1,[\w+/]{43}=$/), signature])
})

test('a webhook is tried eleven times within about a day', () => {
  const waits = Array.from({ length: 11 }, (_, at) => computeRetryMs(at + 1, () => 0.5))
  expect(waits.at(-1)).toBeNull()
  const hours = waits.slice(0, -1).reduce<number>((sum, ms) => sum + (ms ?? 0), 0) / 3_600_000
  expect(hours).toBeGreaterThan(23)
  expect(hours).toBeLessThan(25)
  expect([computeRetryMs(1, () => 0), computeRetryMs(1, () => 1)]).toEqual([4500, 5500])
})
