import { randomUUID } from 'node:crypto'
import { emptyResult, noMeteredUsage } from '../../models/ports/model-ports.ts'
import type { InProcessModel } from '../../models/providers/in-process-model.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import { type ModelRole, rulesOnly } from '../../state/ports/models.ts'
import { estimateTokens } from '../../state/text/tokens.ts'

/** The model that serves while no setting names another; no host has this address, it answers in this process. */
export const offlineEntry: InProcessModel['entry'] = {
  vendor: 'offline',
  name: 'mason-offline',
  base_url: 'http://offline.invalid/v1',
  dialect: 'tools',
  capabilities: [rulesOnly],
  // it reads any prompt in no time
  context_window: 4_000_000,
}

/** Answers a request by the offline model, which is loaded at the first. */
export const answerHere: InProcessModel['send'] = async ({ model, ask, onDelta }, signal) => {
  signal.throwIfAborted()
  const { answerOffline, answerInWriting } = await import('./offline-model.ts')
  const messages = ask.messages.map(
    ({ content, ...message }) => ({ ...message, content: textOf(content) }) as ModelMessage<string>,
  )
  const isWritten = ask.role === 'planner' && model.dialect === 'xml'
  const { text, tool_calls } = (isWritten ? answerInWriting : answerOffline)({
    role: ask.role as ModelRole,
    messages,
    tools: ask.tools,
    ...(ask.parts && { parts: ask.parts }),
    ...(ask.schema && { schema: ask.schema }),
  })
  // what is written comes word by word, as from other models
  for (const piece of isWritten ? text.split(/(?<=\s)/) : [text])
    if (piece !== '') onDelta({ text: piece, reasoning: '' })
  const prompt_tokens = estimateTokens(JSON.stringify([messages, ask.tools, ask.schema]))
  const completion_tokens = estimateTokens(text + JSON.stringify(tool_calls))
  return {
    ok: true,
    result: {
      ...emptyResult,
      text,
      tool_calls: tool_calls.map((call) => ({ id: `call_${randomUUID().replaceAll('-', '')}`, ...call })),
      finish: tool_calls.length > 0 ? 'tool_calls' : 'stop',
      usage: {
        ...noMeteredUsage,
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
      },
      model: offlineEntry.name,
    },
  }
}

const textOf = (content: string | readonly { type: string; text?: string }[]): string =>
  typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('\n')
