import { describe, expect, test } from 'vitest'
import { estimateOf } from '../../src/infra/models/call/estimate.ts'
import type { Wanted } from '../../src/infra/models/call-ports.ts'
import { createChooser } from '../../src/infra/models/choose/choose.ts'
import { offlineModelId, settingsModelId } from '../../src/infra/models/choose/lines.ts'
import { askOf } from '../support/http-call.ts'
import { caller, healthy, model, route, taken, view } from '../support/registry-view.ts'

const blind = model('blind')
const eye = model('eye', { category: 'multimodal' })
const able = model('able', { capabilities: ['vision'] })
const settings = model('settings', { id: settingsModelId })
const offline = model('offline', { id: offlineModelId })
const vision: Wanted = { role: 'vision', images: true }

const choiceOf = (wanted: Wanted, on: Parameters<typeof view>[0]) =>
  createChooser(healthy, () => 0).choose(view(on), wanted, caller())
const namesOf = (wanted: Wanted, on: Parameters<typeof view>[0]) =>
  taken(choiceOf(wanted, on)).map(({ model: { name } }) => name)

describe('who is shown an image', () => {
  test('what the registry says sees, also before the model of the settings', () => {
    expect(namesOf(vision, { models: [settings, blind, able, eye] })).toEqual(['eye', 'able'])
    expect(namesOf({ role: 'vision' }, { models: [settings, eye] })).toEqual(['settings'])
  })

  test('the model of the settings where an admin says that it sees', () => {
    expect(namesOf(vision, { models: [{ ...settings, capabilities: ['vision'] }, eye] })).toEqual([
      'settings',
    ])
  })

  test('nobody where none sees, the offline model least of all', () => {
    expect(namesOf(vision, { models: [offline, blind] })).toEqual([])
  })

  test('of a route those that see; the others are passed over with what to do', () => {
    const on = { models: [blind, eye], routesByRole: { vision: route(['blind', 'eye']) } }
    const choice = choiceOf(vision, on)
    expect(taken(choice).map(({ model: { name } }) => name)).toEqual(['eye'])
    expect(choice.passedOver).toEqual([
      {
        model: 'blind',
        key_label: null,
        why: 'nothing says that it sees: give it the category multimodal or the capability "vision"',
      },
    ])
  })

  test('an alias that the caller names, at his word; but never the offline model', () => {
    const door: Wanted = { role: 'door', category: 'text', images: true }
    expect(namesOf({ ...door, model: 'blind' }, { models: [blind] })).toEqual(['blind'])
    expect(() => choiceOf({ ...door, model: 'offline' }, { models: [offline] })).toThrow(
      expect.objectContaining({ code: 'model_bad_request' }),
    )
  })
})

test('an image counts for limits with a round figure, a small one with less', () => {
  const ask = (detail?: 'low') =>
    askOf({
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'image_url',
              image_url: { url: 'data:image/png;base64,AAAA', ...(detail && { detail }) },
            },
            { type: 'text', text: 'What?' },
          ],
        },
      ],
    })
  const candidate = { model: eye, key: null, probes: { key: false, endpoint: false } }
  expect(estimateOf(ask(), candidate).prompt_tokens).toBe(1502)
  expect(estimateOf(ask('low'), candidate).prompt_tokens).toBe(102)
})
