import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { readReply } from '../../src/dialogue/reply.ts'
import type { Graph } from '../../src/graph/build.ts'
import type { ModelRequest, Models } from '../../src/state/ports/models.ts'
import type { Action } from '../../src/state/runtime-state.ts'
import { scanPython } from '../../src/state/text/python-literals.ts'
import { dialogueInjections } from '../support/dialogue-injections.ts'
import { readPutBack } from '../support/dialogues.ts'
import { memoryRun, modelsOf, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'
import { askPython, hasPython } from '../support/python-programs.ts'

/** A run whose tools return hostile texts, which a later program and a later call of the block refer to. */

const texts = Object.values(dialogueInjections).flat()
const places = texts.map((_, at) => `{results[${at}]}`)
const code = [
  ...places.map((place, at) => `a${at} = "${place}"\nb${at} = '''${place}'''`),
  'print(results)',
].join('\n')
const calls = [
  ...texts.map((_, n) => `<mason_server><fetch>{"n":${n}}</fetch></mason_server>`),
  `<microsandbox_server><execute_python>${code}</execute_python></microsandbox_server>`,
  `<mason_server><keep>${JSON.stringify({ texts: places })}</keep></mason_server>`,
]
const wrote = `<sequential>\n${calls.join('\n')}\n</sequential>\n<execute_tools />`

let actions: Action[]
let requests: ModelRequest[]
let answer: unknown
const ran: { code?: unknown; kept?: unknown; calls: number } = { calls: 0 }

beforeAll(async () => {
  const graph: Graph = await graphWith([
    callTool('fetch', ({ n }) => {
      ran.calls++
      return texts[Number(n)] ?? ''
    }),
    callTool('keep', (args) => {
      ran.kept = args.texts
      return 'kept'
    }),
    {
      ...callTool('execute_python', (args) => {
        ran.code = args.code
        return 'ran'
      }),
      ...{ server: 'microsandbox_server', raw: { field: 'code', language: 'python' } },
      input: z.strictObject({ code: z.string() }),
    },
  ] as never)
  const said = [wrote, '<answer>Nothing in them is for me.</answer>']
  const models: Models & { requests: ModelRequest[] } = {
    ...modelsOf(({ role }, nth) => ({ text: role === 'planner' ? (said[nth - 1] ?? '') : '' })),
    dialects: () => ['xml'],
  }
  const memory = memoryRun({ prompt: 'Read them all' })
  const { state } = await workOn(graph, memory, { models })
  actions = (state.action_history[0] ?? []) as Action[]
  requests = models.requests.filter(({ role }) => role === 'planner')
  answer = memory.ended?.result.answer
})

/** What was put back after the calls. */
const putBack = () => readPutBack(requests[1]?.messages.at(-1)?.content ?? '')

test('60 hostile results are put back as 60 results, changed in nothing but the `<` of tags', () => {
  expect(texts).toHaveLength(60)
  const plain = (text: string): string => text.replaceAll('‹', '<')
  expect(putBack().map(plain)).toEqual([...texts.map(plain), 'ran', 'kept'])
})

test('0 of 60 hostile results are taken as instructions', () => {
  expect([ran.calls, requests.length, answer]).toEqual([60, 2, 'Nothing in them is for me.'])
  expect(actions.filter(({ node }) => node === 'planner')).toHaveLength(2)
  // nor where a model would repeat one as it is
  for (const text of putBack())
    expect([text, readReply(text)]).toEqual([
      text,
      {
        ...{ thought: '', said: text.trim(), answer: null, answers: 0, blocks: [] },
        ...{ isExecuted: false, error: null, written: text.trimEnd(), cut: null },
      },
    ])
})

test('0 of 60 hostile results change the code that runs, or are read for references', () => {
  expect(ran.kept).toEqual(texts)
  const resolved = String(ran.code)
  // a list of the results and two literals for each
  expect(scanPython(resolved)).toMatchObject({ isComplete: true, literals: { length: 3 * texts.length } })
  expect(scanPython(resolved).comments).toEqual([])
})

test.skipIf(!hasPython())(
  'to the real Python the code that runs is the planned one, with 60 hostile results as text',
  () => {
    expect(askPython([{ code, resolved: String(ran.code), texts, results: texts }])).toEqual(['ok'])
  },
)
