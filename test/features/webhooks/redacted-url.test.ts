import { expect, test } from 'vitest'
import { redactUrl } from '../../../src/features/webhooks/webhook-deliveries.ts'
import { createScrubber } from '../../../src/infra/secrets/scrubber.ts'

const canary = 'sk-nightjar"\\/+?0123456789'

test('the address of a delivery is shown without user and query', () => {
  const scrubber = createScrubber()
  scrubber.add(canary)
  expect(redactUrl(`https://u:p@h:1/v1/${encodeURIComponent(canary)}?key=abc&alt=sse#x`, scrubber)).toBe(
    'https://h:1/v1/[secret]?key=[redacted]&alt=[redacted]',
  )
  expect(redactUrl('nonsense', scrubber)).toBe('[redacted]')
})
