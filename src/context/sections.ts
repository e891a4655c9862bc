import type { PromptPart } from '../state/prompt-part.ts'
import { joinTexts, ownText, type PromptText } from '../state/provenance.ts'

/** The titles of all sections that a prompt can have. */
export const titles = {
  user: ownText`User`,
  files: ownText`Files`,
  scenario: ownText`Scenario`,
  style: ownText`Output style`,
  summary: ownText`Session summary`,
  conversation: ownText`Conversation`,
  recalled: ownText`From earlier turns`,
  preferences: ownText`Known preferences`,
  memory: ownText`Memory`,
  structure: ownText`Output structure`,
  goal: ownText`Goal`,
  date: ownText`Date`,
  writer: ownText`Final text`,
  limits: ownText`Limits`,
  request: ownText`Request`,
  draft: ownText`Draft`,
  results: ownText`Results`,
  earlierResults: ownText`Earlier results`,
  plan: ownText`CURRENT PLAN STATUS`,
  task: ownText`YOUR CURRENT TASK`,
  reflection: ownText`Reflection`,
  correction: ownText`Correction`,
  found: ownText`Said and found since`,
  talk: ownText`SUMMARY SO FAR`,
  known: ownText`KNOWN`,
  proposed: ownText`PROPOSED`,
  assistant: ownText`ASSISTANT`,
  said: ownText`USER`,
} as const

/** A section of a prompt; one without text is left out. */
export const part = (title: PromptText, text: PromptText, origin: PromptPart['origin']): PromptPart => ({
  title,
  text,
  origin,
})

/** No text, and no title. */
export const noText = ownText``

/** The text of a message: each part as `# Title` and its text; empty ones are left out. */
export const promptText = (parts: readonly PromptPart[]): PromptText =>
  joinTexts(
    parts.map(({ title, text }) => (title === '' || text === '' ? text : ownText`# ${title}\n${text}`)),
    '\n\n',
  )
