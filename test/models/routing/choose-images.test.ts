import { describe, expect, test } from 'vitest'
import { estimateRequest } from '../../../src/models/call/token-estimate.ts'
import type { ModelSelector } from '../../../src/models/ports/call-ports.ts'
import { settingsModelId } from '../../../src/models/routing/candidate-order.ts'
import { createModelChooser } from '../../../src/models/routing/choose-model-and-key.ts'
import { askOf } from '../../support/http-call.ts'
import { caller, healthy, model, route, taken, view } from '../../support/registry-view.ts'

const blind = model('blind')
const eye = model('eye', { category: 'multimodal' })
const able = model('able', { capabilities: ['vision'] })
const settings = model('settings', { id: settingsModelId })
const offline = model('offline', { capabilities: ['rules-only'] })
const vision: ModelSelector = { role: 'vision', images: true }

const choiceOf = (wanted: ModelSelector, on: Parameters<typeof view>[0]) =>
  createModelChooser(healthy, () => 0).choose(view(on), wanted, caller())
const namesOf = (wanted: ModelSelector, on: Parameters<typeof view>[0]) =>
  taken(choiceOf(wanted, on)).map(({ model: { name } }) => name)

describe('the choice of a model for an image', () => {
  test('is a vision model of the registry, also before the model of the settings', () => {
    expect(namesOf(vision, { models: [settings, blind, able, eye] })).toEqual(['eye', 'able'])
    expect(namesOf({ role: 'vision' }, { models: [settings, eye] })).toEqual(['settings'])
  })

  test('is the model of the settings where an admin marks it as a vision model', () => {
    expect(namesOf(vision, { models: [{ ...settings, capabilities: ['vision'] }, eye] })).toEqual([
      'settings',
    ])
  })

  test('is empty without a vision model, and never the offline model', () => {
    expect(namesOf(vision, { models: [offline, blind] })).toEqual([])
  })

  test('is the vision models of a route; the others are skipped with a remedy', () => {
    const on = { models: [blind, eye], routesByRole: { vision: route(['blind', 'eye']) } }
    const choice = choiceOf(vision, on)
    expect(taken(choice).map(({ model: { name } }) => name)).toEqual(['eye'])
    expect(choice.passedOver).toEqual([
      {
        model: 'blind',
        key_label: null,
        reason: 'nothing says that it sees: give it the category multimodal or the capability "vision"',
      },
    ])
  })

  test('is the alias that the caller names, but never the offline model', () => {
    const door: ModelSelector = { role: 'door', category: 'text', images: true }
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
  const candidate = { model: eye, key: null, probes: [], only: { model: true, key: true } }
  expect(estimateRequest(ask(), candidate).prompt_tokens).toBe(1502)
  expect(estimateRequest(ask('low'), candidate).prompt_tokens).toBe(102)
})
