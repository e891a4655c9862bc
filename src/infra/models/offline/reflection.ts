import type { Json } from '../../../state/runtime-state.ts'
import { fencedLines } from './fences.ts'
import { fillObject, schemaOf } from './fill-schema.ts'
import { isError, readRequest } from './read-request.ts'
import { contentWords, shorten, stem } from './text.ts'

/** Reflection by rules: what failed or found nothing is a gap, what shares words with the request is relevant. */

export type Shown = { id: number; tool: string; text: string; failed: boolean }

/** The `## Action N: tool` blocks of a results section. */
export const readResults = (section: string): Shown[] => {
  const shown: Shown[] = []
  for (const { line, isInside } of fencedLines(section)) {
    const head = isInside ? null : /^## Action (\d+): *(\S*)(.*)$/.exec(line)
    const last = shown.at(-1)
    if (head)
      shown.push({
        id: Number(head[1]),
        tool: (head[2] ?? '').replace(/[,:;]$/, ''),
        text: '',
        failed: /(?:^|[\s})])\((?:error|failed)\)\s*$/i.test(head[3] ?? ''),
      })
    else if (last) last.text += `${last.text === '' ? '' : '\n'}${line}`
  }
  return shown.map((action) => ({
    ...action,
    text: action.text.trim(),
    failed:
      action.failed ||
      isError(action.text) ||
      /^\**(?:is_?error|error)\**\s*[:=]\s*(?:true|yes)\b/im.test(action.text),
  }))
}

const foundNothing = (text: string): boolean => text === '' || /^No matches found/i.test(text)

const relevanceOf = (action: Shown, words: readonly string[]): number => {
  if (action.failed) return 0.2
  if (foundNothing(action.text)) return 0.4
  if (action.tool === 'calculate') return 0.9
  const lower = action.text.slice(0, 50_000).toLowerCase()
  const hits = words.filter((word) => lower.includes(word)).length
  return Math.round((0.6 + (words.length > 0 ? (0.35 * hits) / words.length : 0)) * 100) / 100
}

type Todo = { id: string; task: string; done: boolean }

const readTodos = (section: string): Todo[] =>
  section.split('\n').flatMap((line) => {
    const m = /^- \[(.)\] ([^:]+): (.*?)(?: \((\w+)(?: after [^)]*)?\))?\s*$/.exec(line)
    return m
      ? [
          {
            id: m[2] ?? '',
            task: m[3] ?? '',
            done: /x/i.test(m[1] ?? '') || m[4] === 'completed' || m[4] === 'failed',
          },
        ]
      : []
  })

const toolVerbs: readonly (readonly [RegExp, string])[] = [
  [/\bread|load|open|读取|阅读/i, 'read_file'],
  [/\bsearch|find|look|搜索|查找/i, 'search_file_content'],
  [/\bcalculat|comput|work out|figure|sum|计算|求和/i, 'calculate'],
  [/\bask|confirm|clarif|询问|确认/i, 'ask_user'],
]

/** A todo is done when a tool its words speak of came back well; without such a tool nothing is said of it. */
const judgeTodo = (todo: Todo, actions: readonly Shown[]): { id: string; status: string }[] => {
  const tool = toolVerbs.find(([verb]) => verb.test(`${todo.id} ${todo.task}`))?.[1]
  const own = actions.filter(
    (action) => action.tool === tool || (action.tool !== '' && todo.task.includes(action.tool)),
  )
  return todo.done || own.length === 0 || !own.some((action) => !action.failed)
    ? []
    : [{ id: todo.id, status: 'completed' }]
}

export const reflect = (body: unknown): Record<string, Json> => {
  const request = readRequest(body, 'judge')
  const actions = readResults(request.sections.get('Results') ?? '')
  const failed = actions.filter((action) => action.failed)
  const empty = actions.filter((action) => !action.failed && foundNothing(action.text))
  const words = contentWords(request.prompt).map(stem)
  const enough = actions.length > 0 && failed.length === 0 && empty.length < actions.length
  const gaps = [
    ...failed.map(
      ({ id, tool, text }) => `Action ${id} (${tool}) failed: ${shorten(text.replace(/\s+/g, ' '), 200)}`,
    ),
    ...(enough ? [] : empty.map(({ id, tool }) => `Action ${id} (${tool}) found nothing.`)),
  ]
  const gap = gaps.length > 0 ? gaps.join(' ') : actions.length === 0 ? 'There are no results yet.' : ''
  const good = actions.length - failed.length - empty.length
  const known: Record<string, Json> = {
    reasoning: `${actions.length} results: ${good} with content, ${empty.length} empty, ${failed.length} failed.`,
    is_sufficient: enough,
    knowledge_gap: enough ? '' : gap,
    follow_up_queries: enough
      ? []
      : [...failed, ...empty]
          .slice(0, 3)
          .map(({ tool, id }) => `Try another way than ${tool || 'that'} of action ${id}.`),
    judged: actions.map((action) => ({
      id: action.id,
      relevance: relevanceOf(action, words),
      important: action.tool === 'calculate' && !action.failed,
    })),
    todos: readTodos(request.sections.get('CURRENT PLAN STATUS') ?? '').flatMap((todo) =>
      judgeTodo(todo, actions),
    ),
  }
  const schema = schemaOf(body)
  return schema ? fillObject(known, schema, schema) : known
}
