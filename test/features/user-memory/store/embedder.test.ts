import { expect, test } from 'vitest'
import { createMemoryEmbedder } from '../../../../src/features/user-memory/store/embedder.ts'
import * as registry from '../../../support/registry-view.ts'
import { codeOf } from '../../../support/runs.ts'

test('a space is of one model: its vectors are made no more once the alias is of another', async () => {
  const viewOf = (upstream_name: string) =>
    registry.view({
      models: [registry.model('embed', { category: 'embedding', upstream_name })],
      routesByRole: { embedding: registry.route(['embed']) },
    })
  let view = viewOf('one')
  const ask = () => Promise.reject(new Error('a model was asked'))
  const sql = { query: () => Promise.reject(new Error('the database was asked')) }
  const embedder = createMemoryEmbedder({ sql, ask, view: () => view })
  const before = embedder.current()
  expect(embedder.offers(before)).toBe(true)
  view = viewOf('two')
  expect(embedder.current()).not.toBe(before)
  expect(embedder.offers(before)).toBe(false)
  const { signal } = new AbortController()
  expect(await codeOf(embedder.embed(before, ['a'], registry.caller(), signal))).toBe('no_model_available')
})
