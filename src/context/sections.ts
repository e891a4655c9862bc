import type { PromptPart } from '../state/prompt-part.ts'
import { fitTokens } from '../state/text/tokens.ts'

/** The titles of all sections that a prompt can have. */
export const titles = {
  user: 'User',
  files: 'Files',
  scenario: 'Scenario',
  style: 'Output style',
  summary: 'Session summary',
  conversation: 'Conversation',
  recalled: 'From earlier turns',
  memory: 'Memory',
  structure: 'Output structure',
  goal: 'Goal',
  date: 'Date',
  writer: 'Final text',
  limits: 'Limits',
  request: 'Request',
  draft: 'Draft',
  results: 'Results',
  earlierResults: 'Earlier results',
  plan: 'CURRENT PLAN STATUS',
  task: 'YOUR CURRENT TASK',
  reflection: 'Reflection',
  correction: 'Correction',
  found: 'Said and found since',
  talk: 'SUMMARY SO FAR',
  known: 'KNOWN',
  assistant: 'ASSISTANT',
  said: 'USER',
} as const

/** A section without the blank lines around its text. */
export const part = (title: string, text: string, origin: PromptPart['origin']): PromptPart => ({
  title,
  text: text.trim(),
  origin,
})

/** The text of a message: each part as `# Title` and its text; empty ones are left out. */
export const promptText = (parts: readonly PromptPart[]): string =>
  parts
    .filter(({ text }) => text !== '')
    .map(({ title, text }) => (title === '' ? text : `# ${title}\n${text}`))
    .join('\n\n')

/** The parts if they take `max` tokens at most, else one without a title: the start and the end of their text. */
export const fitParts = (parts: readonly PromptPart[], max: number): readonly PromptPart[] => {
  const text = promptText(parts)
  const fitted = fitTokens(text, max)
  return fitted === text ? parts : [{ title: '', text: fitted, origin: 'agent' }]
}
