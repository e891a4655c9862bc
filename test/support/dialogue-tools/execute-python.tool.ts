import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'

/** What the requirement's examples print, by a part of their code. */
const printed: readonly (readonly [part: string, text: string])[] = [
  ['os.listdir', "['main.py', 'core/', 'docs/']"],
  ["open('main.py', 'r')", '# Main application logic...'],
  ['age_string = "As of July 2025, Joe Biden is 82 years old."', 'In 10 years, he will be 92.'],
]

/** Stands for the sandbox of the requirement: it knows the code of its examples, and runs none. */
export default defineTool({
  name: 'execute_python',
  description: 'Runs Python',
  server: 'microsandbox_server',
  exclusive: 'sandbox',
  raw: { field: 'code', language: 'python' },
  kinds: ['call'],
  input: z.strictObject({ code: z.string() }),
  reads: [],
  writes: [],
  run(_state, context) {
    const { code } = readCallInput(context)
    const text = printed.find(([part]) => code.includes(part))?.[1]
    return context.checkpoint({
      summary: 'Ran Python',
      result: text === undefined ? { is_error: true, text: `NameError: ${code}` } : { text },
    })
  },
})
