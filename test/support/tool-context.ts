import { readLinePage } from '../../src/files/child/line-page.ts'
import { RefusedStatementError } from '../../src/files/protocol/child-protocol.ts'
import type { AnyTool } from '../../src/graph/definitions.ts'
import { checkWrites, createServiceView, createView } from '../../src/graph/state-view.ts'
import { type ActionDraft, prepareAction } from '../../src/state/checkpoint.ts'
import { MasonError } from '../../src/state/errors.ts'
import { applyAction } from '../../src/state/fold.ts'
import type { Patch } from '../../src/state/patch.ts'
import type { LineQuery } from '../../src/state/ports/files.ts'
import type { Memories } from '../../src/state/ports/memories.ts'
import type { PersonAnswer, Question } from '../../src/state/ports/questions.ts'
import {
  type ActionBody,
  emptyState,
  type OriginFile,
  type RuntimeState,
} from '../../src/state/runtime-state.ts'

type Setting = {
  /** Arguments as a model gives them; checked against the tool's schema. */
  input: unknown
  /** Name -> content; each becomes an origin file of the state. */
  files?: Record<string, string | Uint8Array>
  state?: Partial<RuntimeState>
  answer?: PersonAnswer
  memories?: Memories
  signal?: AbortSignal
}

/** What one visit of a tool left: its draft, the action made of it, its patch, the state after it. */
export type Visited = {
  draft: ActionDraft
  action: ActionBody
  patch: Patch
  state: RuntimeState
  questions: Question[]
  /** What the model reads. */
  text: string
  isError: boolean
}

const originFile = (name: string): OriginFile => ({ name, type: 'text/plain', local_path: '', mapping: null })

const inMemory = (contents: Record<string, string | Uint8Array>) => ({
  async readLines(source: { readonly name: string } | string, query: LineQuery, signal: AbortSignal) {
    const bytes = typeof source === 'string' ? Buffer.from(source) : await this.read(source, signal)
    try {
      return { ok: true, page: readLinePage(bytes, query) }
    } catch (error) {
      if (error instanceof RefusedStatementError) return { ok: false, reason: error.message }
      throw error
    }
  },
  async read(file: { readonly name: string }, signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted()
    const content = Object.hasOwn(contents, file.name) ? contents[file.name] : undefined
    if (content === undefined) throw new MasonError('not_found', `the bytes of ${file.name} are gone`)
    return typeof content === 'string' ? Buffer.from(content) : content
  },
})

/**
 * Runs one tool on a hand-made state, in memory: the fields it may read and write and the shape of its action are
 * checked as the graph checks them, and the services it needs. Only files, ask, checkpoint and the memories given work.
 */
export const visitTool = async (tool: AnyTool, setting: Setting): Promise<Visited> => {
  const { input, files = {}, answer, signal = new AbortController().signal } = setting
  const before: RuntimeState = {
    ...emptyState,
    prompts: ['hello'],
    task_goals: [''],
    todos: [[]],
    action_history: [[]],
    usage: [{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    origin_files: Object.keys(files).map(originFile),
    ...setting.state,
  }
  const checkpoints: Visited[] = []
  const questions: Question[] = []
  const services = createServiceView(tool, ['models', 'files', 'blobs', 'memories'])({
    models: {},
    files: inMemory(files),
    blobs: { read: async () => null },
    memories: setting.memories,
  } as never)
  const context = Object.assign(services, {
    call: { index: 0, id: 'call_0', input: tool.input.parse(input) },
    async ask(question: Question): Promise<PersonAnswer> {
      questions.push(question)
      if (!answer) throw new Error('the setting has no answer')
      return answer
    },
    async checkpoint(draft: ActionDraft, patch: Patch = {}): Promise<RuntimeState> {
      checkWrites(tool, patch)
      const next = draft.next ?? ['reflection']
      const { body } = await prepareAction(tool.name, { ...draft, next }, patch, async () => 'blob')
      const state = applyAction(before, { seq: 1, turn: before.prompts.length, body, patch })
      const { text, is_error } = draft.result ?? {}
      checkpoints.push({
        draft,
        action: body,
        patch,
        state,
        questions,
        text: String(text),
        isError: is_error === true,
      })
      return state
    },
  })
  const returned = await tool.run(createView(tool)(before) as RuntimeState, context as never, signal)
  const [visited, second] = checkpoints
  if (!visited || second) throw new Error(`${tool.name} appended ${checkpoints.length} actions in one visit`)
  if (returned !== visited.state) throw new Error(`${tool.name} did not return what checkpoint resolved to`)
  return visited
}
