import type { PromptText } from '../provenance.ts'
import type { Json, Usage } from '../runtime-state.ts'

/** The categories of models that make or read images, recordings and videos. */
export type MediaCategory =
  | 'text-to-image'
  | 'image-edit'
  | 'speech-to-text'
  | 'text-to-speech'
  | 'text-to-video'

/** The bytes of an image, a recording or a video. */
export type MediaFile = { mime_type: string; bytes: Uint8Array }

/** What a model is to make, in the names of OpenAI's API, or the file that it is to read. */
export type MediaRequest = {
  category: MediaCategory
  prompt: PromptText | null
  files?: readonly (MediaFile & { name: string })[]
  parameters?: Readonly<Record<string, Json | undefined>>
}

/** What a model made: files, or the text of a recording. `model` is the alias that answered. */
export type MediaReply = { text: string; files: readonly MediaFile[]; usage: Usage; model: string }

/** A job that a vendor works on: data to store, so that any worker can bring its result. */
export type MediaJob = {
  model: string
  key_id: string | null
  job_id: string
  submitted_at: string
  usage: Usage
}

/** The media models of one caller. Errors are MasonError with a `model_*` code; an abort rejects with the signal's reason. */
export type MediaModels = {
  /** Whether a model of the category is set up for the caller. */
  has(category: MediaCategory): boolean
  /** A job is polled until its result is there; where that must survive this process, `submit` and `poll`. */
  make(request: MediaRequest, signal: AbortSignal): Promise<MediaReply>
  /**
   * Resolves with the job, or the result itself where it is there at once. `beforeSend` is called in the moment before the
   * first byte. The detail of an error has `may_have_job` where the vendor may have taken the job all the same.
   */
  submit(
    request: MediaRequest,
    beforeSend: () => void,
    signal: AbortSignal,
  ): Promise<{ job: MediaJob } | { reply: MediaReply }>
  /** Polls a job once: its result, or when to poll again. Half an hour after its submission it is an error. */
  poll(
    job: MediaJob,
    request: MediaRequest,
    signal: AbortSignal,
  ): Promise<{ reply: MediaReply } | { againInMs: number }>
}

declare module './services.ts' {
  interface Services {
    media: MediaModels
  }
}
