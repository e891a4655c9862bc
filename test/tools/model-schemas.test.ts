import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadAllParts } from '../../src/app/load-all-parts.ts'
import { toModelSchema } from '../../src/state/model-schema.ts'
import type { ModelTool } from '../../src/state/ports/model-messages.ts'
import { requestsOf } from '../context/golden/runs.ts'
import { tableFile } from '../context/golden/sessions.ts'

type Schema = { description?: string; properties?: Record<string, Schema>; items?: Schema }
/** Every field of an object at any depth, by its path, with what is said of it. */
const listFields = ({ properties = {}, items }: Schema, path = ''): [string, string | undefined][] => [
  ...Object.entries(properties).flatMap(([name, field]): [string, string | undefined][] => [
    [`${path}.${name}`, field.description],
    ...listFields(field, `${path}.${name}`),
  ]),
  ...(items ? listFields(items, `${path}[]`) : []),
]

const offered = async (): Promise<readonly ModelTool[]> => {
  const { tools } = await loadAllParts()
  const own = tools.filter(({ kinds }) => kinds.includes('call'))
  const asTools = own.map(({ name, description, input }) => ({
    name,
    description,
    parameters: toModelSchema(input, 'input'),
  }))
  // the planner's control calls are offered beside the tools
  const [request] = (await requestsOf(tableFile)).filter(({ role }) => role === 'planner')
  const names = new Set(asTools.map(({ name }) => name))
  return [...asTools, ...(request?.tools ?? []).filter(({ name }) => !names.has(name))]
}

describe('a tool as models get it', () => {
  test('says of every parameter what it is', async () => {
    const tools = await offered()
    expect(tools.map(({ name }) => name)).toContain('update_todos')
    for (const { name, parameters } of tools) {
      const fields = listFields(parameters as Schema, name)
      // these take what the tools before them found
      if (!['update_cart', 'get_payment_credential_token'].includes(name))
        expect(fields.length, name).toBeGreaterThan(0)
      expect(fields.filter(([, description]) => !description)).toEqual([])
    }
  })

  test('has no bounds that only mean a safe integer, and no dialect of the schema', async () => {
    const text = JSON.stringify(await offered())
    expect(text).not.toMatch(/900719925474099|\$schema/)
  })
})

test('a schema keeps the bounds that a model can act on', () => {
  const schema = z.strictObject({
    near: z.int().min(2).max(20),
    any: z.int(),
    name: z.string().min(1).max(50),
    text: z.string().max(4000),
    few: z.array(z.string()).min(2).max(16),
  })
  expect(toModelSchema(schema, 'input').properties).toEqual({
    near: { type: 'integer', minimum: 2, maximum: 20 },
    any: { type: 'integer' },
    name: { type: 'string', maxLength: 50 },
    text: { type: 'string' },
    few: { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 16 },
  })
})
