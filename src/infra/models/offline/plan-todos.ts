import type { Json } from '../../../state/runtime-state.ts'
import type { Call } from './read-request.ts'
import type { Language } from './text.ts'

/** The plan for a request that needs files: read, work out, answer. Named after the calls it begins with. */

type Planned = { id: string; task: string; dependencies: string[]; suggested_tools: string[] }

const words: Record<
  Language,
  { read: string; search: string; figures: string; answer: string; and: string }
> = {
  en: {
    read: 'Read',
    search: 'Search',
    figures: 'Work out the figures asked for',
    answer: 'Answer with the figures and their lines',
    and: ', ',
  },
  zh: {
    read: '读取',
    search: '搜索',
    figures: '计算所问的数字',
    answer: '回答并注明数字来自哪些行',
    and: '、',
  },
}

const filesOf = (calls: readonly Call[], tool: string): string[] => [
  ...new Set(calls.filter((call) => call.name === tool).map((call) => String(call.args.file_path ?? ''))),
]

/** Two to four todos, each waiting for those before it. */
export const planTodos = (
  calls: readonly Call[],
  needsFigures: boolean,
  tools: ReadonlySet<string>,
  language: Language,
): Call => {
  const text = words[language]
  const first: Planned[] = (['read_file', 'search_file_content'] as const).flatMap((tool): Planned[] => {
    const files = filesOf(calls, tool)
    if (files.length === 0) return []
    const [id, verb] =
      tool === 'read_file' ? (['read', text.read] as const) : (['search', text.search] as const)
    return [
      {
        id,
        task: `${verb} ${files.slice(0, 5).join(text.and)}${files.length > 5 ? ' …' : ''}`,
        dependencies: [],
        suggested_tools: [tool],
      },
    ]
  })
  const figures: Planned[] =
    needsFigures && tools.has('calculate')
      ? [
          {
            id: 'calculate',
            task: text.figures,
            dependencies: first.map(({ id }) => id),
            suggested_tools: ['calculate'],
          },
        ]
      : []
  const before = figures.length > 0 ? figures : first
  const answer: Planned = {
    id: 'answer',
    task: text.answer,
    dependencies: before.map(({ id }) => id),
    suggested_tools: [],
  }
  return { name: 'update_todos', args: { todos: [...first, ...figures, answer] as unknown as Json } }
}
