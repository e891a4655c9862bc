import { buildBackground } from '../../src/context/background.ts'
import { promptText } from '../../src/context/sections.ts'
import { plannerPrompt } from '../../src/nodes/planner/messages.ts'
import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import { outputParts } from '../../src/tools/output/output-prompt.ts'

/** Prompts as vendors get them. */

export const plannerMessages = (...args: Parameters<typeof plannerPrompt>): ModelMessage[] =>
  plannerPrompt(...args).messages

export const backgroundText = (...args: Parameters<typeof buildBackground>): string =>
  promptText(buildBackground(...args))

export const outputText = (...args: Parameters<typeof outputParts>): string =>
  promptText(outputParts(...args))
