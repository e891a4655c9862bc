import type { Patch } from './patch.ts'
import type { AdmittedRequest } from './run-request.ts'
import type { OutputField } from './runtime-state.ts'
import { cutText } from './text/cut-text.ts'

const maxGoal = 300

/** The goal of a turn as long as no step says it better: its request, cut. */
export const toRequestGoal = (prompt: string): string => cutText(prompt.trim() || prompt, maxGoal)

/**
 * The structure of a turn: what its request names, `inherited` where it asks for the session's, else none. An `answer` is
 * plain text.
 */
export const openStructure = (
  { output }: Pick<AdmittedRequest, 'output'>,
  inherited: () => Omit<OutputField, 'content'>[] = () => [],
): OutputField[] => {
  const structure = output?.structure === 'session' ? inherited() : (output?.structure ?? [])
  return output?.tool === 'answer' ? [] : structure.map((field) => ({ ...field, content: null }))
}

/** What a turn is opened with, as far as its request alone says it. */
export const createOpeningPatch = (request: AdmittedRequest, turn: number) =>
  ({
    prompts: request.prompt,
    task_goals: toRequestGoal(request.prompt),
    chat_history: [{ role: 'user', content: request.prompt, turn }],
    ...(request.files.length > 0 && { origin_files: request.files }),
    ...(request.scenario !== undefined && { scenario: request.scenario }),
    ...(request.output?.style !== undefined && { output_style: request.output.style }),
    output_structure: openStructure(request),
  }) satisfies Patch
