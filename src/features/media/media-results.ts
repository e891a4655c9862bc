import { errorDraft } from '../../graph/call-drafts.ts'
import type { DeclaredPatch } from '../../graph/definitions.ts'
import type { ActionDraft } from '../../state/checkpoint.ts'
import type { Blobs } from '../../state/ports/blobs.ts'
import type { MediaCategory, MediaFile, MediaModels } from '../../state/ports/media.ts'
import type { Json, RuntimeState, Usage } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { turnActions } from '../../state/turn.ts'

/** What a model made, as a blob under a name of its own in the run. */
export type StoredMedia = { name: string; blob: string; mime_type: string; bytes: number }

/** The error of a tool without a model of its category; null where there is one. */
export const findMissingModel = (
  media: Pick<MediaModels, 'has'>,
  tool: string,
  category: MediaCategory,
): ActionDraft | null =>
  media.has(category)
    ? null
    : errorDraft(
        `${tool} has no model`,
        `Error: no model of the category ${category} is set up, so ${tool} cannot be used. An admin can add one ` +
          `(mason models add --vendor … --base-url … --name … --category ${category}) or a route ` +
          `(POST /admin/v1/routes with "category": "${category}"). Go on without it, and say what is missing.`,
      )

const extensions: Readonly<Record<string, string>> = {
  jpeg: 'jpg',
  mpeg: 'mp3',
  'x-wav': 'wav',
  wave: 'wav',
  'svg+xml': 'svg',
  quicktime: 'mov',
}

const toExtension = (mimeType: string): string => {
  const [, subtype = 'bin'] = mimeType.split('/')
  return extensions[subtype] ?? (/^[a-z0-9]{1,8}$/.test(subtype) ? subtype : 'bin')
}

/** A name that no other call of the session gives: the plan's action and the call's index are in it. */
const toBaseName = (
  state: Pick<RuntimeState, 'prompts' | 'action_history'>,
  kind: string,
  index: number,
): string => {
  const plan = turnActions(state).findLast(({ result }) => result.calls !== undefined)
  return `${kind}-${plan?.id ?? 0}-${index + 1}`
}

/** Stores what a model made. The same bytes in the same call have the same name and blob. */
export const storeMedia = async (
  state: Pick<RuntimeState, 'prompts' | 'action_history'>,
  { blobs, call }: { blobs: Blobs; call: { index: number } | null },
  kind: 'image' | 'speech' | 'video',
  files: readonly MediaFile[],
): Promise<StoredMedia[]> => {
  const base = toBaseName(state, kind, call?.index ?? 0)
  return Promise.all(
    files.map(async ({ bytes, mime_type }, at) => ({
      name: `${base}${files.length > 1 ? `-${at + 1}` : ''}.${toExtension(mime_type)}`,
      blob: await blobs.store(bytes),
      mime_type,
      bytes: bytes.length,
    })),
  )
}

/** The files become files of the run; what is in a recording or a video, no later turn tries to find out. */
const toPatch = (stored: readonly StoredMedia[]): DeclaredPatch<'origin_files' | 'preprocessed_files'> => {
  const opaque = stored.filter(({ mime_type }) => !mime_type.startsWith('image/'))
  return {
    origin_files: stored.map(({ name, mime_type, blob }) => ({
      name,
      type: mime_type,
      local_path: `blob:${blob}`,
      mapping: null,
    })),
    ...(opaque.length > 0 && {
      preprocessed_files: {
        other_files: Object.fromEntries(
          opaque.map(({ name, mime_type, blob, bytes }) => [
            name,
            {
              from: `blob:${blob}`,
              format: mime_type.split('/')[0] ?? '',
              readable: true,
              facts: { type: mime_type, bytes },
              notes: [],
            },
          ]),
        ),
      },
    }),
  }
}

/** The action and the patch of a call that made files. */
export const toMediaAction = (
  what: string,
  stored: readonly StoredMedia[],
  { run, usage, model }: { run: { run_id: string }; usage: Usage; model: string },
): [ActionDraft, ReturnType<typeof toPatch>] => {
  const [first] = stored
  const names = stored.map(({ name, mime_type, bytes }) => `${name} (${mime_type}, ${bytes} bytes)`)
  const text = `${what}: ${names.join(', ')}. ${stored.length === 1 ? 'It is a file' : 'They are files'} of the run now; name ${stored.length === 1 ? 'it' : 'them'} in the answer.`
  return [
    {
      summary: cutText(`${what}: ${stored.map(({ name }) => name).join(', ')}`, 200),
      result: { text, files: stored as unknown as Json, model },
      context: {
        type: first?.mime_type.startsWith('image/') ? 'image' : 'data',
        content: stored as unknown as Json,
        important: true,
        usage_type: 'output',
        ...(first && {
          mapping: {
            provider: 'local',
            path: `blob:${first.blob}`,
            public: `/v1/runs/${run.run_id}/blobs/${first.blob}`,
          },
        }),
      },
      relevance: 0.8,
      usage,
    },
    toPatch(stored),
  ]
}
