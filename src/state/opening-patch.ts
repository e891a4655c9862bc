import type { Patch } from './patch.ts'
import type { AdmittedRequest } from './run-request.ts'
import { cutText } from './text/cut-text.ts'

const maxGoal = 300

/** The goal of a turn as long as no step says it better: its request, cut. */
export const toRequestGoal = (prompt: string): string => cutText(prompt.trim() || prompt, maxGoal)

/** What a turn is opened with, as far as its request alone says it. */
export const createOpeningPatch = (request: AdmittedRequest, turn: number) =>
  ({
    prompts: request.prompt,
    task_goals: toRequestGoal(request.prompt),
    chat_history: [{ role: 'user', content: request.prompt, turn }],
    ...(request.files.length > 0 && { origin_files: request.files }),
    ...(request.scenario !== undefined && { scenario: request.scenario }),
    ...(request.output?.style !== undefined && { output_style: request.output.style }),
    ...(request.output?.structure && {
      output_structure: request.output.structure.map((piece) => ({ ...piece, content: null })),
    }),
  }) satisfies Patch
