import { createInterface } from 'node:readline/promises'
import { safeParse } from 'secure-json-parse'
import type { RunEvent } from '../../state/run-view.ts'
import type { Json } from '../../state/runtime-state.ts'
import { openHiddenLines } from './hidden-input.ts'
import { type Terminal, toOneLine, toPrintable } from './terminal.ts'

/** A question of a run, as the `input_required` event carries it. */
export type InputRequest = Pick<
  Extract<RunEvent, { event: 'input_required' }>['data'],
  'id' | 'question' | 'schema' | 'options' | 'secret'
>

/** The question and its possible answers, as lines for people. */
export const formatQuestion = ({ question, options, schema }: InputRequest): string[] => [
  toPrintable(question),
  ...options.map((option, index) => `  ${index + 1}) ${toOneLine(option)}`),
  ...(options.length === 0 && schema.type === 'boolean' ? ['  yes or no'] : []),
]

/** The typed text as a value of the schema's type, or undefined when it cannot be one. The server validates it fully. */
export const parseAnswer = (typed: string, { options, schema }: InputRequest): Json | undefined => {
  const text = typed.trim()
  if (text === '') return undefined
  if (options.length > 0) {
    const exact = options.find((option) => option.toLowerCase() === text.toLowerCase())
    return exact ?? (/^\d+$/.test(text) ? options[Number(text) - 1] : undefined)
  }
  switch (schema.type) {
    case 'boolean':
      return /^(?:y|yes|true)$/i.test(text) ? true : /^(?:n|no|false)$/i.test(text) ? false : undefined
    case 'number':
    case 'integer':
      return Number.isFinite(Number(text)) ? Number(text) : undefined
    case 'object':
    case 'array':
      return safeParse(text) ?? undefined
    default:
      return text
  }
}

/** Asks until an answer matches. Rejects when the signal aborts; Ctrl-C goes to the process, as everywhere else. */
export const promptForAnswer = async (
  request: InputRequest,
  { out, colors }: Terminal,
  signal: AbortSignal,
): Promise<Json> => {
  const lines = request.secret ? openHiddenLines() : createInterface({ input: process.stdin, output: out })
  lines.on('SIGINT', () => {
    out.write('\n')
    process.emit('SIGINT')
  })
  try {
    out.write(`\n${colors.bold(formatQuestion(request).join('\n'))}\n`)
    if (request.secret) out.write('(not shown) ')
    for (;;) {
      const answer = parseAnswer(await lines.question('> ', { signal }), request)
      if (answer !== undefined) return answer
      out.write(colors.yellow('Not a valid answer. '))
    }
  } finally {
    lines.close()
  }
}
