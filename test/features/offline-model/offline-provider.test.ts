import { describe, expect, test } from 'vitest'
import { findInProcessModel } from '../../../src/app/find-early.ts'
import { readConfig } from '../../../src/app/read-config.ts'
import { part, promptText, titles } from '../../../src/context/sections.ts'
import service from '../../../src/features/offline-model/in-process-model.service.ts'
import { offlineEntry } from '../../../src/features/offline-model/offline-provider.ts'
import type { Provider, ProviderRequest } from '../../../src/models/ports/model-ports.ts'
import { withInProcessModel } from '../../../src/models/providers/in-process-model.ts'
import { ownText } from '../../../src/state/provenance.ts'
import * as entries from '../../support/registry-view.ts'

const parts = [part(titles.request, ownText`What is 2 + 3?`, 'user')]
const messages = [{ role: 'user' as const, content: promptText(parts) }]
const tools = [{ name: 'calculate', description: 'Computes', parameters: { type: 'object' } }]
const signal = AbortSignal.timeout(120_000)

/** The provider as a process without settings of a server has it. */
const offlineBefore = (others: Provider): Provider =>
  withInProcessModel(others, service.start({ config: readConfig({}, { role: 'run' }) }))

describe('the provider of the offline model', () => {
  const refused: Provider = { send: () => Promise.reject(new Error('sent to a vendor')) }
  const at = (base_url: string, deltas: string[] = []): ProviderRequest => ({
    model: entries.model('m', { endpoint: entries.endpoint('e', { base_url }) }),
    key: null,
    ask: {
      role: 'planner',
      messages,
      parts,
      tools,
      schema: null,
      input: [],
      query: null,
      prompt: null,
      parameters: {},
      stream: true,
    },
    endsAtMs: 0,
    usedIds: [],
    onDelta: ({ text }) => deltas.push(text),
  })

  test('leaves a request to a vendor to others', async () => {
    const sent = offlineBefore(refused).send(at('https://vendor.example/v1'), signal)
    await expect(sent).rejects.toThrow('sent to a vendor')
  })

  test('answers at its own address, with calls, its text as it comes and an estimate of tokens', async () => {
    const deltas: string[] = []
    const outcome = await offlineBefore(refused).send(at(offlineEntry.base_url, deltas), signal)
    if (!outcome.ok) throw new Error('no outcome')
    const { text, tool_calls, finish, model, usage } = outcome.result
    expect({ finish, model }).toEqual({ finish: 'tool_calls', model: 'mason-offline' })
    expect(tool_calls).toMatchObject([{ name: 'calculate', arguments: '{"expression":"2 + 3"}' }])
    expect(deltas.join('')).toBe(text)
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
  })

  test('reads the last message where a prompt has no parts', async () => {
    const { parts: _, ...ask } = at(offlineEntry.base_url).ask
    const asked = {
      ...at(offlineEntry.base_url),
      ask: { ...ask, messages: [{ role: 'user' as const, content: '4 * 5' }] },
    }
    const outcome = await offlineBefore(refused).send(asked, signal)
    expect(outcome).toMatchObject({ result: { tool_calls: [{ arguments: '{"expression":"4 * 5"}' }] } })
  })

  test('leaves other addresses to the other provider, and stops when its caller has gone', async () => {
    const offline = offlineBefore(refused)
    await expect(offline.send(at('https://vendor.example/v1'), signal)).rejects.toThrow('sent to a vendor')
    const gone = AbortSignal.abort(new Error('gone'))
    await expect(offline.send(at(offlineEntry.base_url), gone)).rejects.toThrow('gone')
  })
})

describe('the model in this process', () => {
  test('is the offline model where the settings name none, in the dialect that they name', async () => {
    for (const dialect of ['tools', 'xml']) {
      const config = readConfig({ MASON_OFFLINE_DIALECT: dialect }, { role: 'run' })
      expect((await findInProcessModel(config))?.entry).toEqual({ ...offlineEntry, dialect })
    }
  })

  test('is none where they name a server', async () => {
    const config = readConfig({ OPENAI_API_KEY: 'sk-of-the-settings' }, { role: 'run' })
    expect(await findInProcessModel(config)).toBeNull()
  })
})
