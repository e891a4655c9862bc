import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkFormat } from '../../../../src/features/response-formats/formats/format-check.ts'
import { formatInputSchema } from '../../../../src/models/schemas/response-format.ts'
import { call, errorOf, keyOf, modelOf, resultOf } from '../../../support/http-call.ts'
import { parrotKey, parrotWords, startOddVendor } from '../../../support/odd-vendor.ts'

test('the format of the walk-through is valid, and works with the odd vendor', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../../docs/walkthrough-odd-vendor.md'), 'utf8')
  const [, text = ''] = /response-formats <<'JSON' \| id\n([\s\S]*?)^JSON$/m.exec(page) ?? []
  const format = formatInputSchema.parse(JSON.parse(text))
  expect(checkFormat(format)).toEqual([])

  await using vendor = await startOddVendor()
  const model = { ...modelOf(format, `${vendor.url}/v2`), upstream_name: 'macaw-2' }
  const ask = {
    messages: [
      { role: 'system' as const, content: 'Be kind.' },
      { role: 'user' as const, content: 'Hello' },
      { role: 'assistant' as const, content: '', tool_calls: [{ id: 'a', name: 'f', arguments: '{}' }] },
      { role: 'tool' as const, content: 'done', tool_call_id: 'a' },
    ],
    parameters: { temperature: 0.5, max_tokens: 10 },
  }
  const result = resultOf(await call({ model, ask, key: keyOf(parrotKey) }))
  expect(result).toMatchObject({
    text: parrotWords('Hello'),
    reasoning: 'I shall repeat it, as parrots do.',
    finish: 'stop',
  })
  expect(result.usage?.completion_tokens).toBe(4)

  expect(errorOf(await call({ model, ask, key: keyOf('wrong') })).error.code).toBe('model_unauthorized')
  const hot = { ...ask, parameters: { temperature: 9 } }
  expect(errorOf(await call({ model, ask: hot, key: keyOf(parrotKey) })).error.code).toBe('model_bad_request')
})
