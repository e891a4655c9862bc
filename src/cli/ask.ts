import { createInterface } from 'node:readline/promises'
import type { RunEvent } from '../state/run-view.ts'
import type { Json } from '../state/runtime-state.ts'
import { oneLine, printable, type Terminal } from './terminal.ts'

export type InputRequest = Pick<
  Extract<RunEvent, { event: 'input_required' }>['data'],
  'id' | 'question' | 'schema' | 'options'
>

/** The question and what may be answered, as lines for people. */
export const questionLines = ({ question, options, schema }: InputRequest): string[] => [
  printable(question),
  ...options.map((option, index) => `  ${index + 1}) ${oneLine(option)}`),
  ...(options.length === 0 && schema.type === 'boolean' ? ['  yes or no'] : []),
]

/** What was typed as a value that the schema may take; undefined when it can't be one. The server has the last word. */
export const readAnswer = (typed: string, { options, schema }: InputRequest): Json | undefined => {
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
      return parsed(text)
    default:
      return text
  }
}

const parsed = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Asks until something fits. Rejects when the signal aborts; Ctrl-C goes to the process, as everywhere else. */
export const askPerson = async (
  request: InputRequest,
  { out, colors }: Terminal,
  signal: AbortSignal,
): Promise<Json> => {
  const lines = createInterface({ input: process.stdin, output: out })
  lines.on('SIGINT', () => {
    out.write('\n')
    process.emit('SIGINT')
  })
  try {
    out.write(`\n${colors.bold(questionLines(request).join('\n'))}\n`)
    for (;;) {
      const answer = readAnswer(await lines.question('> ', { signal }), request)
      if (answer !== undefined) return answer
      out.write(colors.yellow('That does not fit. '))
    }
  } finally {
    lines.close()
  }
}
