import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tableReader from '../../../src/features/tables/tables.reader.ts'
import { readLinePage } from '../../../src/files/child/line-page.ts'
import { prepareFile } from '../../../src/files/child/prepare-file.ts'
import { toTableName } from '../../../src/state/files/table-names.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import type { LineQuery, PreparedFiles } from '../../../src/state/ports/files.ts'
import type { ModelRequest, Models, ModelWindow } from '../../../src/state/ports/models.ts'
import type { Services } from '../../../src/state/ports/services.ts'
import type { AdmittedRequest } from '../../../src/state/run-request.ts'
import type { Json, OriginFile } from '../../../src/state/runtime-state.ts'
import { type MemoryRun, memoryRun, modelsOf, type Said, workOn } from '../../support/memory-run.ts'
import { graphWith } from '../../support/parts.ts'

/** Whole runs in memory whose requests are the golden prompts: real graph and tools, scripted models, a fixed clock. */

type Files = Record<string, string>
type Script = Partial<Record<ModelRequest['role'], readonly (Said | object)[]>>
type Turn = { request: Partial<AdmittedRequest> & { prompt: string }; files?: Files; says: Script }
/** A session, turn by turn, and what its models say. */
export type Session = {
  turns: readonly Turn[]
  profile?: Record<string, Json>
  memories?: readonly string[]
  /** Rows that `query_table` gives, one query after the other; an error as its text. */
  rows?: readonly (string | Record<string, Json>[])[]
  window?: ModelWindow
}

const startedAt = new Date('2026-11-20T02:30:00Z')
const clock: Clock = {
  now: () => startedAt,
  monotonicMs: () => 0,
  // nothing waits in these runs, and no limit of time is reached
  sleep: (_ms, signal) =>
    new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
}

const toOrigin = (name: string): OriginFile => ({
  name,
  type: name.endsWith('.csv') ? 'text/csv' : 'text/markdown',
  local_path: `/files/${name}`,
  mapping: null,
})

/** What the file process finds in these texts. */
const prepare = async (contents: Files, origins: readonly OriginFile[]): Promise<PreparedFiles> => {
  const prepared: PreparedFiles = { origin_files: [], documents: {}, tables: {}, other_files: {} }
  const folder = await mkdtemp(join(tmpdir(), 'golden-'))
  for (const { name, type, local_path: from } of origins) {
    const path = join(folder, name)
    await writeFile(path, contents[name] ?? '')
    const {
      format,
      notes,
      document,
      tables = [],
    } = await prepareFile({ kind: 'prepare', path, name, type, folder }, [tableReader])
    if (document) prepared.documents[name] = { from, format, notes, ...document, text: null }
    for (const one of tables) {
      const table = toTableName(name, new Set(Object.keys(prepared.tables)))
      prepared.tables[table] = { from, format, table, file: name, ...one }
    }
  }
  await rm(folder, { recursive: true })
  return prepared
}

const toReply = (said: Said | object): Said =>
  'text' in said || 'tool_calls' in said ? said : { text: JSON.stringify(said) }

/** Every request of the last turn of a session, in order. */
export const requestsOf = async ({
  turns,
  profile = {},
  memories = [],
  rows = [],
  window,
}: Session): Promise<ModelRequest[]> => {
  const graph = await graphWith()
  const contents: Files = Object.assign({}, ...turns.map(({ files }) => files))
  const left = [...rows]
  let memory: MemoryRun | null = null
  let requests: ModelRequest[] = []
  for (const [at, { request, files = {}, says }] of turns.entries()) {
    const admitted = { user_id: 'u1', ...request, files: Object.keys(files).map(toOrigin) }
    memory = { ...(memory ?? memoryRun(admitted)), request: admitted, turn: at + 1, ended: null, workedMs: 0 }
    const models: Models & { requests: ModelRequest[] } = modelsOf(({ role }, nth) => {
      const said = says[role]?.[nth - 1]
      if (!said) throw new Error(`turn ${at + 1}: no reply ${nth} for ${role}`)
      return toReply(said)
    })
    if (window) models.window = () => window
    const services: Partial<Services> = {
      files: {
        read: async ({ name }: OriginFile) => Buffer.from(contents[name] ?? ''),
        readLines: async (source: { readonly name: string } | string, query: LineQuery) => {
          const content = typeof source === 'string' ? source : (contents[source.name] ?? '')
          return { ok: true, page: readLinePage(Buffer.from(content), query) }
        },
        prepare: (list: readonly OriginFile[]) => prepare(contents, list),
        descriptions: { find: async () => null, keep: async () => {} },
      } as never,
      tables: {
        query: async () => {
          const next = left.shift() ?? 'no such column: nothing is scripted'
          return typeof next === 'string'
            ? { ok: false, reason: next }
            : {
                ok: true,
                columns: Object.keys(next[0] ?? {}),
                rows: next.map((row) => Object.values(row) as (string | number)[]),
                hasMore: false,
              }
        },
      },
      users: { profile: async () => profile },
      memories: {
        any: async () => memories.length > 0,
        search: async () => [],
        recall: async () => memories.map(toMemory),
        remember: async ({ content }) => ({ keep: true, id: 'm9', content, supersedes: [] }) as never,
      },
    }
    await workOn(graph, memory, { clock, models, services })
    if (!memory.ended) throw new Error(`turn ${at + 1} did not end`)
    requests = models.requests
  }
  return requests
}

const toMemory = (content: string, at: number) => ({
  id: `m${at + 1}`,
  kind: 'preference' as const,
  content,
  relevance: 0.8,
  source_action_ids: [],
  created_at: '2026-10-01T00:00:00Z',
  origin: 'user' as const,
  trusted: true,
})
