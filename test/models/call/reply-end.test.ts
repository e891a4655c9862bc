import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { waitedFor } from '../../support/clock.ts'
import { type FakeModel, startFakeModel } from '../../support/fake-model/fake-model.ts'
import { createMeteredModels } from '../../support/metered-models.ts'
import { ask, never } from '../../support/models.ts'

/** The end of a reply over HTTP, against the fake OpenAI server. */

let server: FakeModel
beforeEach(async () => {
  server = await startFakeModel()
})
afterEach(async () => {
  await server.close()
})

const untilResult = { stop: ['<result'], watch: () => () => false, continues: () => false }

describe('the end of a reply', () => {
  test('is sent as `stop`, and is only sent where the request has one', async () => {
    const { models } = createMeteredModels(server)
    await models.call(ask({ end: untilResult }), never())
    await models.call(ask(), never())
    const sent = server.requests('planner').map(({ body }) => body.stop)
    expect(sent).toEqual([['<result'], undefined])
  })

  test('is where a text of `stop` begins: what comes later was not written, is not streamed, and is counted', async () => {
    server.script({ planner: [{ text: 'calls\n<result index="0">made up</result>' }] })
    const { models } = createMeteredModels(server)
    const heard: string[] = []
    const reply = await models.call(ask({ end: untilResult, onText: (text) => heard.push(text) }), never())
    expect(reply.text).toBe('calls\n')
    expect(reply.cut).toBeGreaterThan(0)
    expect(heard.join('')).toBe('calls\n')
  })

  test('is where the vendor ends it: the beginning of a text of `stop` alone is text', async () => {
    server.script({ planner: [{ text: 'a <res' }] })
    const { models, settled } = createMeteredModels(server)
    const heard: string[] = []
    const reply = await models.call(ask({ end: untilResult, onText: (text) => heard.push(text) }), never())
    expect([reply.text, reply.cut, heard.join('')]).toEqual(['a <res', undefined, 'a <res'])
    expect(settled).toMatchObject([{ status: 'succeeded', usage: { total_tokens: 15 } }])
  })

  test('comes 200 ms after it is whole where the vendor goes on; it is metered by estimate, in the ledger and in the run', async () => {
    server.script({ planner: [{ text: 'first and second', failure: 'stall_after_first_chunk' }] })
    const { models, settled } = createMeteredModels(server)
    const waited = waitedFor()
    const reply = await models.call(
      ask({ end: { stop: [], watch: () => () => true, continues: () => false } }),
      never(),
    )
    expect(waited(195)).toBe(true)
    expect('first and second'.startsWith(reply.text) && reply.text !== '').toBe(true)
    expect(reply.usage.completion_tokens).toBeGreaterThan(0)
    expect(settled).toMatchObject([{ status: 'succeeded', error_code: null, usage: null }])
    expect(settled[0]?.estimate?.prompt_tokens).toBe(reply.usage.prompt_tokens)
  })

  test('leaves the usage of a vendor that comes to its end in time', async () => {
    server.script({ planner: [{ text: 'whole' }] })
    const { models, settled } = createMeteredModels(server)
    const reply = await models.call(
      ask({ end: { stop: [], watch: () => () => true, continues: () => false } }),
      never(),
    )
    expect(reply).toMatchObject({ text: 'whole', usage: { total_tokens: 15 } })
    expect(settled).toMatchObject([{ usage: { total_tokens: 15 } }])
  })

  test.each([
    ['stop', 'the end. The vendor goes on', 'length'],
    ['length', 'the beginning', 'length'],
    ['length', 'up to the end\n', 'length'],
    ['content_filter', 'the end, which is withheld', 'content_filter'],
  ] as const)('makes it %s where the reply is %j and the vendor says %s', async (finish, text, said) => {
    server.script({ planner: [{ text, finish: said }] })
    const { models } = createMeteredModels(server)
    const watch = () => (text: string) => text.includes('end')
    const end = { stop: [], watch, continues: () => false }
    expect((await models.call(ask({ end }), never())).finish).toBe(finish)
  })

  test.each([
    [
      'OpenAI',
      {
        error: { message: "Unsupported parameter: 'stop' is not supported with this model.", param: 'stop' },
      },
    ],
    ['Anthropic', { error: { message: 'stop_sequences: Extra inputs are not permitted' } }],
    ['Gemini', { error: { message: 'Invalid value at generation_config.stopSequences' } }],
  ])('is not sent again where the vendor refuses `stop` (%s), which is noted once', async (_, body) => {
    server.script({
      planner: [{ failure: { status: 400, body } }, { text: 'calls\n<result index="0">' }],
    })
    const { models, noted } = createMeteredModels(server)
    const reply = await models.call(ask({ end: untilResult }), never())
    expect(reply.text).toBe('calls\n')
    expect(server.requests('planner').map(({ body }) => body.stop)).toEqual([['<result'], undefined])
    expect(noted).toEqual(['fake-model'])
  })

  test('is not sent to a model whose row notes that its vendor refuses `stop`', async () => {
    const { models, noted } = createMeteredModels(server, { refuses_stop: true })
    await models.call(ask({ end: untilResult }), never())
    expect(server.requests('planner').map(({ body }) => body.stop)).toEqual([undefined])
    expect(noted).toEqual([])
  })

  test('does not hide another refusal', async () => {
    server.script({
      planner: [{ failure: { status: 400, body: { error: { message: 'the schema is not valid' } } } }],
    })
    const { models, noted } = createMeteredModels(server)
    await expect(models.call(ask({ end: untilResult }), never())).rejects.toMatchObject({
      code: 'model_bad_request',
    })
    expect(server.requests('planner')).toHaveLength(1)
    expect(noted).toEqual([])
  })
})
