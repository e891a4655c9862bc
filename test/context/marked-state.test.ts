import { expect, test } from 'vitest'
import { z } from 'zod'
import { buildBackground } from '../../src/context/background.ts'
import { findDraft } from '../../src/context/context.ts'
import { promptText } from '../../src/context/sections.ts'
import compaction from '../../src/nodes/compaction/compaction.node.ts'
import { plannerPrompt } from '../../src/nodes/planner/messages.ts'
import reflection from '../../src/nodes/reflection/reflection.node.ts'
import { preparedSchemas } from '../../src/state/files/prepared-files.ts'
import type { ModelRequest } from '../../src/state/ports/models.ts'
import {
  actionSchema,
  type RuntimeState,
  runtimeStateSchema,
  stateFields,
} from '../../src/state/runtime-state.ts'
import { outputParts } from '../../src/tools/output/output-prompt.ts'
import structured from '../../src/tools/output/structured-answer.tool.ts'
import understand from '../../src/tools/understand/understand.tool.ts'
import { fieldsOf, markOf, splitFences, textsOf } from '../support/fences.ts'
import { modelsOf } from '../support/memory-run.ts'

/** A state whose every text is a marker that says where it is, made of the schema: a new field is in it by itself. */

const turns = 4
type Schema = {
  type?: string
  enum?: unknown[]
  const?: unknown
  items?: Schema

  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  anyOf?: Schema[]
  $ref?: string
}

const fill = (schema: Schema, path: string, count = 1): unknown => {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const choice = schema.anyOf?.find(({ type }) => type === 'object' || type === 'array') ?? schema.anyOf?.[0]
  // a value of any JSON
  if (schema.$ref || (choice && schema.anyOf && schema.anyOf.length > 3))
    return { [marker(`${path}.key`)]: [marker(`${path}.value`)] }
  if (choice) return fill(choice, path)
  if (schema.type === 'string') return marker(path)
  if (schema.type === 'array')
    return Array.from({ length: count }, (_, at) => fill(schema.items ?? {}, `${path}.${at}`))
  if (schema.type === 'object') {
    const named = Object.entries(schema.properties ?? {}).map(([name, one]) => [
      name,
      fill(one, `${path}.${name}`),
    ])
    const more =
      typeof schema.additionalProperties === 'object'
        ? [[marker(`${path}.key`), fill(schema.additionalProperties, `${path}.entry`)]]
        : []
    return Object.fromEntries([...named, ...more])
  }
  if (schema.type === 'boolean') return false
  return 1
}
const marker = (path: string): string => `zq.${path}.qz`
const markers = /zq\.([\w. ]+?)\.qz/gi

const toFilled = <Value>(schema: z.ZodType<Value>, path: string): Value =>
  fill(z.toJSONSchema(schema) as Schema, path) as Value

const filledAction = (id: number, more: object) => ({
  ...toFilled(actionSchema, `action_history.${id}`),
  id,
  next: [],
  usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  ...more,
})

/** The actions of a turn: real in what routing and prompts go by, marked in every text. */
const turnOf = (turn: number) => {
  const id = turn * 10
  const at = (name: string) => marker(`action_history.${id}.${name}`)
  const calls = [0, 1, 2].map((index) => ({
    index,
    id: `c${index}`,
    tool: at(`tool${index}`),
    args: { [at('argument')]: at('value') },
  }))
  const answer = (index: number, result: object) =>
    filledAction(id + 2 + index, {
      node: at(`tool${index}`),
      result: { ...result, call: { index, id: `c${index}` } },
    })
  return [
    filledAction(id, {
      node: 'load-session',
      result: { started_at: '2026-11-20T08:00:00Z', time_zone: at('zone'), files: ['f'] },
    }),
    filledAction(id + 1, {
      node: 'planner',
      result: { calls, block: 'parallel', reasoning: at('reasoning'), reasoned_by: 'm' },
      next: calls.map(({ tool }) => tool),
    }),
    answer(0, { text: at('text'), provenance: 'file' }),
    answer(1, { text: at('error'), is_error: true }),
    answer(2, { [at('data')]: at('data value'), head: at('head'), blob: 'b', bytes: 99_999 }),
    filledAction(id + 5, {
      node: 'reflection',
      result: { is_sufficient: false, knowledge_gap: at('gap'), follow_up_queries: [at('query')] },
    }),
    ...(turn === turns ? [filledAction(id + 6, { node: 'planner', result: { draft: at('draft') } })] : []),
    ...(turn === 2
      ? [filledAction(id + 6, { node: 'compaction', result: { text: at('summary'), compacted: [[1, 9]] } })]
      : []),
  ]
}

const createState = (): RuntimeState => {
  const shape = (z.toJSONSchema(runtimeStateSchema) as Schema).properties ?? {}
  const state = Object.fromEntries(
    Object.entries(shape).map(([field, schema]) => [field, fill(schema, field, turns)]),
  ) as unknown as Record<string, never> & RuntimeState
  const [file] = state.origin_files as [RuntimeState['origin_files'][number]]
  const entry = { from: file.local_path, readable: true }
  const table = toFilled(preparedSchemas.table, 'preprocessed_files.tables')
  const document = toFilled(preparedSchemas.document, 'preprocessed_files.documents')
  const other = toFilled(preparedSchemas.other, 'preprocessed_files.other_files')
  const origin_files = [file, ...state.origin_files.slice(1)].map((one) => ({ ...one, mapping: null }))
  return {
    ...state,
    origin_files,
    // a preference that the user's own message asserts is the user's
    memory: state.memory.map(({ confirmed: _confirmed, ...memory }, at) =>
      at === 0 ? { ...memory, content: marker('said by the user.memory'), confirmed: true } : memory,
    ),
    preprocessed_files: {
      tables: { t: { ...table, from: file.local_path, file: file.name } },
      documents: { [file.name]: { ...document, from: file.local_path } },
      other_files: {
        [origin_files[1]?.name ?? '']: {
          ...other,
          ...entry,
          from: origin_files[1]?.local_path,
        },
      },
    } as never,
    action_history: Array.from({ length: turns }, (_, at) => turnOf(at + 1)),
    todos: state.todos.map((list) => list.map((todo) => ({ ...todo, dependencies: [], retry_after: null }))),
    chat_history: Array.from({ length: turns * 2 }, (_, at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: marker(at % 2 === 0 ? `said by the user.${at}` : `chat_history.${at}`),
      turn: Math.floor(at / 2) + 1,
    })),
  }
}

/** The requests of every role about this state. */
const requestsOf = async (state: RuntimeState): Promise<ModelRequest[]> => {
  const models = modelsOf(() => ({ text: '{}' }))
  const context = {
    ...{ models, scenario: null, call: null, log: { debug() {}, info() {}, warn() {}, error() {} } },
    checkpoint: async () => state,
    request: { user_id: 'u', prompt: 'x', files: [] },
    scenarios: { list: () => [], find: () => null },
    embeddings: { compare: async () => null },
    graph: { tools: [], tool: () => undefined },
    clock: { now: () => new Date(0) },
    workedMs: () => 0,
    stream: () => {},
  } as never
  const signal = AbortSignal.timeout(120_000)
  for (const part of [understand, reflection, compaction, structured])
    await part.run(state as never, context, signal)
  const planner = {
    role: 'planner' as const,
    ...plannerPrompt(state, { budget: 60_000, canOpen: true, limits: { max_steps: 8 } }),
  }
  const output = outputParts(state, findDraft(state), 60_000)
  const background = buildBackground(state)
  const asked = (role: ModelRequest['role'], parts: typeof output): ModelRequest => ({
    role,
    messages: [{ role: 'user', content: promptText(parts) }],
  })
  return [...models.requests, planner, asked('output', output), asked('understand', background)]
}

/** Which origins a field's text may have; of a field that is not here, any. */
const origins: Partial<Record<string, readonly string[]>> = {
  user_context: ['profile'],
  memory: ['memory'],
  origin_files: ['file'],
  preprocessed_files: ['file'],
  action_history: ['agent', 'file', 'tool'],
}

/** An id of the structure is a key of the answer's schema: letters, digits and dots, by its pattern. */
const isKey = (path: string, text: string): boolean =>
  text.startsWith('{') && /^output_structure\.\d\.id$/.test(path)

/** Figures only. */
const unseenFields = ['usage']

test('every text of the state that is in a prompt is in a fence of its origin, or it is the user’s own', async () => {
  const state = createState()
  const mark = markOf(state.prompts[0] ?? '')
  const requests = await requestsOf(state)
  expect(new Set(requests.map(({ role }) => role))).toEqual(
    new Set(['understand', 'reflection', 'compaction', 'output', 'planner']),
  )
  const found = new Set<string>()
  const wrong: string[] = []
  for (const request of requests)
    for (const text of textsOf(request)) {
      const { outside, inside } = splitFences(text, mark)
      for (const [, path = ''] of outside.matchAll(markers))
        if (!/^(prompts|said by the user)\./.test(path) && !isKey(path, text))
          wrong.push(`${request.role}: ${path} is outside`)
      for (const one of inside)
        for (const [, path = ''] of one.text.matchAll(markers)) {
          const [field = ''] = path.replaceAll(' ', '_').split('.')
          found.add(field)
          if (!(origins[field] ?? ['agent']).includes(one.origin))
            wrong.push(`${request.role}: ${path} is in a fence of ${one.origin}`)
        }
    }
  expect(wrong).toEqual([])
  expect([...found].sort()).toEqual(
    stateFields.filter((field) => ![...unseenFields, 'prompts'].includes(field)).sort(),
  )
  // where no fence fits, no marks are
  expect(requests.flatMap(fieldsOf).filter((text) => text.includes(mark))).toEqual([])
})
