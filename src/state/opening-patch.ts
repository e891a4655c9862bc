import type { Patch } from './patch.ts'
import type { AdmittedRequest } from './run-request.ts'

/** What a turn is opened with, as far as its request alone says it. */
export const createOpeningPatch = (request: AdmittedRequest, turn: number) =>
  ({
    prompts: request.prompt,
    chat_history: [{ role: 'user', content: request.prompt, turn }],
    ...(request.files.length > 0 && { origin_files: request.files }),
    ...(request.scenario !== undefined && { scenario: request.scenario }),
    ...(request.output?.style !== undefined && { output_style: request.output.style }),
    ...(request.output?.structure && {
      output_structure: request.output.structure.map((piece) => ({ ...piece, content: null })),
    }),
  }) satisfies Patch
