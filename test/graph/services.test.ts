import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadAllParts } from '../../src/app/load-all-parts.ts'
import { buildGraph } from '../../src/graph/build.ts'
import { type AnyTool, defineTool } from '../../src/graph/definitions.ts'
import { memoryRun, planners, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'
import { listNeededServices } from '../support/services.ts'

/** The result of one call of a tool, as the run's log has it. */
const resultOf = async (tool: AnyTool) => {
  const models = planners({ tool_calls: [{ name: tool.name, arguments: {} }] }, { text: 'Done.' })
  const { state } = await workOn(await graphWith([tool]), memoryRun({ prompt: 'Go.' }), { models })
  return state.action_history.flat().find((action) => action.node === tool.name)?.result
}

const input = z.strictObject({})

describe('services', () => {
  test('a graph with a tool or node that needs a missing service is refused by the names of both', async () => {
    const parts = await loadAllParts()
    const tool = { ...callTool('count', () => ''), needs: ['files', 'sandbox'] }
    const nodes = parts.nodes.map((node) => (node.name === 'end' ? { ...node, needs: ['clocks'] } : node))
    const names = listNeededServices(parts)
    expect(() => buildGraph({ nodes, tools: [...parts.tools, tool] }, names)).toThrow(
      expect.objectContaining({
        code: 'invalid_graph',
        detail: {
          errors: [
            expect.stringMatching(/^node "end" needs the service "clocks", which is not there; remove it/),
            expect.stringMatching(
              /^tool "count" needs the service "sandbox".+ name one that is there \(models, clock, log, .+ \*\.run-service\.ts$/,
            ),
          ],
        },
      }),
    )
  })

  test('a tool has the services that it needs beside those of every visit', async () => {
    const tool = defineTool({
      ...{ name: 'look', description: '', kinds: ['call'], input, reads: [], writes: [] },
      needs: ['users', 'blobs'],
      async run(_state, { users, blobs, models, clock, log, checkpoint }) {
        log.debug({ at: clock.now() }, models.describe().name)
        const text = JSON.stringify([await users.profile('u1'), await blobs.read('none')])
        return checkpoint({ summary: 'Looked', result: { text } })
      },
    })
    expect(await resultOf(tool)).toMatchObject({ text: '[{},null]' })
  })

  test('a tool that declares services and uses another gets an error that names both and the remedy', async () => {
    const readFiles = (_args: unknown, context: unknown) => String((context as { files: unknown }).files)
    const tool = callTool('peek', readFiles)
    expect(await resultOf(tool)).toMatchObject({ text: '[object Object]' })
    expect(await resultOf({ ...tool, needs: ['users'] })).toMatchObject({
      is_error: true,
      text: `Error: "peek" used the service files, which it does not declare; add 'files' to its needs`,
    })
  })

  test('a context can be copied without a use of the undeclared services', async () => {
    const tool = { ...callTool('copy', (_args, context) => Object.keys({ ...context }).join(' ')), needs: [] }
    const { text } = (await resultOf(tool)) as { text: string }
    expect(text.split(' ')).toEqual(expect.arrayContaining(['models', 'clock', 'log', 'checkpoint']))
    expect(text).not.toMatch(/files|blobs|users|memories/)
  })

  test('a prepare tool is asked for work with the services that it needs, and with no other', async () => {
    const asked: unknown[] = []
    const greet = defineTool({
      ...{ name: 'greet', description: '', kinds: ['prepare'], input, reads: ['prompts'], writes: [] },
      needs: ['memories'],
      async hasWork(services, state) {
        asked.push(Object.keys(services), state.prompts)
        return services.memories.any()
      },
      run: (_state, { checkpoint }) => checkpoint({ summary: 'Greeted' }),
    })
    const nosy = defineTool({
      ...{ name: 'nosy', description: '', kinds: ['prepare'], input, reads: [], writes: [], needs: [] },
      hasWork: async (services) => (services as { memories?: object }).memories !== undefined,
      run: (_state, { checkpoint }) => checkpoint({ summary: 'Peeked' }),
    })
    const { state } = await workOn(await graphWith([greet]), memoryRun({ prompt: 'Hi.' }), {
      models: planners({ text: 'Done.' }),
    })
    expect(asked).toEqual([expect.arrayContaining(['models', 'clock', 'log', 'memories']), ['Hi.']])
    expect(state.action_history.flat().map(({ node }) => node)).not.toContain('greet')
    const memory = memoryRun({ prompt: 'Hi.' })
    await workOn(await graphWith([nosy]), memory, { models: planners({ text: 'Done.' }) })
    expect(memory.ended?.outcome).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('"nosy" used the service memories') },
    })
  })
})
