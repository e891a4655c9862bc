import { mkdirSync, mkdtempSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { renderPlan } from '../../../src/context/context.ts'
import { describeFiles } from '../../../src/context/file-descriptions.ts'
import { part, promptText, titles } from '../../../src/context/sections.ts'
import { evaluateExpression } from '../../../src/features/calculate/expression.ts'
import { answerOffline } from '../../../src/features/offline-model/offline-model.ts'
import type { OfflineRequest } from '../../../src/features/offline-model/request.ts'
import type { LoadedTable } from '../../../src/features/tables/child/query-job.ts'
import { runStatement } from '../../../src/features/tables/child/query-statement.ts'
import tableReader from '../../../src/features/tables/tables.reader.ts'
import { readLinePage } from '../../../src/files/child/line-page.ts'
import { prepareFile } from '../../../src/files/child/prepare-file.ts'
import type { PreparedTable } from '../../../src/state/files/prepared-files.ts'
import { toTableName } from '../../../src/state/files/table-names.ts'
import type { ModelMessage } from '../../../src/state/ports/model-messages.ts'
import type { PromptPart } from '../../../src/state/prompt-part.ts'
import { createDataFence, toLabel, userWords } from '../../../src/state/provenance.ts'
import type { OriginFile, Todo } from '../../../src/state/runtime-state.ts'
import { applyTodoChanges, type TodoChange } from '../../../src/state/todos.ts'

/** A planner's turn with the offline model: its calls are answered as Mason's tools answer, until it gives a text. */

type Args = Record<string, unknown>
export type Chat = {
  files?: Record<string, string>
  tools?: readonly string[]
  memory?: string
  user?: string
  structure?: string
  /** Takes the place of a tool's result. */
  instead?: (name: string, args: Args) => string | undefined
}
export type Outcome = {
  text: string
  calls: { name: string; args: Args; result: string }[]
  /** The last change of the plan, and the plan before it. */
  closing: Args[]
  todos: Todo[]
}

const allTools = ['query_table', 'calculate', 'search_file_content', 'read_file', 'update_todos']
const fence = createDataFence({ prompts: ['x'] })

export const toolsNamed = (names: readonly string[]): OfflineRequest['tools'] =>
  names.map((name) => ({ name, description: name, parameters: { type: 'object' } }))

/** The parts of a prompt, as the context code makes them. */
export const partsFor = (prompt: string, { user, memory, structure }: Chat, files = ''): PromptPart[] => [
  part(titles.user, fence(user ?? '', toLabel('profile')), 'profile'),
  part(titles.files, fence(files, toLabel('file')), 'file'),
  part(titles.memory, fence(memory ?? '', toLabel('memory')), 'memory'),
  part(titles.structure, userWords(structure ?? ''), 'agent'),
  part(titles.request, userWords(prompt), 'user'),
]

type Prepared = { shown: string; run(name: string, args: Args): Promise<string> }

// the next `npm test` removes it: no hook of vitest is the last of its process
mkdirSync('test-results', { recursive: true })
const root = mkdtempSync(join('test-results', 'offline-'))
/** By their content: hundreds of questions are about the same few files. */
const prepared = new Map<string, Promise<Prepared>>()

const prepare = (files: Record<string, string>): Promise<Prepared> => {
  const key = JSON.stringify(files)
  const found = prepared.get(key) ?? prepareIn(join(root, String(prepared.size)), files)
  prepared.set(key, found)
  return found
}

const prepareIn = async (folder: string, files: Record<string, string>): Promise<Prepared> => {
  await mkdir(folder)
  const tables: Record<string, PreparedTable> = {}
  const documents: Record<string, unknown> = {}
  const loaded: LoadedTable[] = []
  const origins: OriginFile[] = []
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name)
    await writeFile(path, text)
    const type = name.endsWith('.csv') ? 'text/csv' : 'text/plain'
    origins.push({ name, type, local_path: path, mapping: null })
    const found = await prepareFile({ kind: 'prepare', path, name, type, folder }, [tableReader])
    const { format, notes, document } = found
    if (document) documents[name] = { from: path, format, notes, ...document, text: null }
    for (const one of found.tables ?? []) {
      const table = toTableName(name, new Set(Object.keys(tables)))
      tables[table] = { from: path, format, table, file: name, ...one }
      loaded.push({ table, path, name, type, part: one.part, rows: one.rows, columns: one.columns })
    }
  }
  const state = { origin_files: origins, preprocessed_files: { documents, tables, other_files: {} } }
  return {
    shown: origins.length > 0 ? describeFiles(state as Parameters<typeof describeFiles>[0]) : '',
    async run(name, args) {
      if (name === 'calculate') {
        const worked = evaluateExpression(String(args.expression))
        return worked.ok ? `${String(args.expression)} = ${worked.value}` : `Error: ${worked.error}`
      }
      if (name === 'query_table') return query(String(args.sql), loaded)
      const text = files[String(args.file_path)]
      return text === undefined
        ? 'Error: File not found.'
        : search(String(args.file_path), text, String(args.pattern))
    },
  }
}

const query = async (sql: string, tables: readonly LoadedTable[]): Promise<string> => {
  try {
    const { columns, rows } = await runStatement({ sql, tables, cached: null }, [tableReader])
    if (rows.length === 0) return `No rows. Columns: ${columns.join(', ')}.`
    const line = (cells: readonly unknown[]): string => `| ${cells.map((cell) => cell ?? '').join(' | ')} |`
    return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n')
  } catch (error) {
    return `Error: ${(error as Error).message}.`
  }
}

const search = (name: string, text: string, source: string): string => {
  const page = readLinePage(Buffer.from(text), {
    ...{ first: 1, last: text.length + 1, pattern: source, mode: 'search' },
    ...{ maxLines: 200, maxBytes: text.length * 2, maxLineChars: text.length },
  })
  if (!page || page.found === 0) return `No matches found in '${name}' for pattern '${source}'.`
  const lines = page.shown.map(({ number, text: line }) => `[Line ${number}: ${line}]`)
  const more = page.found > 200 ? ` (and ${page.found - 200} more matching lines)` : ''
  return `Matches in '${name}': ${lines.join(', ')}${more}`
}

/** Plays one turn; throws when the model does not come to an end within 10 replies. */
export const play = async (prompt: string, chat: Chat = {}): Promise<Outcome> => {
  const { shown, run } = await prepare(chat.files ?? {})
  const parts = partsFor(prompt, chat, shown)
  const messages: ModelMessage<string>[] = [{ role: 'user', content: promptText(parts) }]
  const tools = toolsNamed(chat.tools ?? allTools) ?? []
  const calls: Outcome['calls'] = []
  let todos: Todo[] = []
  for (let round = 0; round < 10; round++) {
    const shownParts = [...parts, ...renderPlan({ todos: [todos] }, 9000, fence)]
    const reply = answerOffline({ role: 'planner', messages, parts: shownParts, tools })
    const made = reply.tool_calls.map((call, i) => ({ id: `c${round}_${i}`, ...call }))
    const changes = made.filter(({ name }) => name === 'update_todos')
    const own = made.filter(({ name }) => name !== 'update_todos')
    if (own.length === 0)
      return {
        text: reply.text,
        calls,
        todos,
        closing: changes.map((call) => JSON.parse(call.arguments) as Args),
      }
    for (const { arguments: json } of changes) {
      const planned = applyTodoChanges(todos, (JSON.parse(json) as { todos: TodoChange[] }).todos)
      if (!planned.ok) throw new Error(planned.error)
      todos = planned.todos
    }
    messages.push({ role: 'assistant', content: reply.text, tool_calls: own })
    for (const { id, name, arguments: json } of own) {
      const args = JSON.parse(json) as Args
      const result = chat.instead?.(name, args) ?? (await run(name, args))
      calls.push({ name, args, result })
      messages.push({ role: 'tool', tool_call_id: id, content: fence(result, toLabel('file')) })
    }
  }
  throw new Error(`no end after 10 replies: ${JSON.stringify(calls.slice(-3))}`)
}
