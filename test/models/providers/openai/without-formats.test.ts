import { describe, expect, test } from 'vitest'
import { openEgress } from '../../../../src/infra/egress/egress.ts'
import { silentLog } from '../../../../src/infra/lib/silent-log.ts'
import { createOpenAIProvider } from '../../../../src/models/providers/openai/openai-provider.ts'
import { noResponseFormats } from '../../../../src/models/providers/response-formats.ts'
import { askOf, keyOf, modelOf } from '../../../support/http-call.ts'
import { createCountingClock, never } from '../../../support/models.ts'

const format = { name: 'own', category: 'text', paths: { text: 'text' }, samples: [] }

describe('without the feature for response formats, a model', () => {
  test.each([
    ['that makes images', null, 'text-to-image', 'was not asked: this server reads no response formats'],
    [
      'with a format',
      format,
      'text',
      'was not asked: the response format cannot be used: this server reads no response formats',
    ],
  ])('%s is not asked, and its error says why', async (_, own, category, what) => {
    await using egress = openEgress()
    const clock = createCountingClock()
    const provider = createOpenAIProvider({ egress, formats: noResponseFormats, clock, log: silentLog })
    const request = {
      model: { ...modelOf(own, 'http://127.0.0.1:9', { protocol: 'openai' as const }), category },
      key: keyOf(),
      ask: askOf({}),
      endsAtMs: clock.monotonicMs() + 20_000,
      usedIds: [],
      onDelta: () => {},
    }
    const outcome = await provider.send(request, never())
    expect(outcome).toMatchObject({ ok: false, error: { what, retry: false } })
  })
})
