import type { FormatInput } from '../../../models/schemas/response-format.ts'
import type { Json } from '../../../state/runtime-state.ts'

type FormatDeclaration = Omit<FormatInput, 'category' | 'request' | 'samples'> & {
  /** Text unless it says otherwise. */
  category?: string
  /** The path under the endpoint's base URL to which requests are posted, and another one for streams. */
  post: string
  postStream?: string
  headers?: Record<string, string>
  encoding?: 'multipart'
  receives?: 'bytes'
  body: Json
}

/** The counts of vendors that say input and output. */
export const inputOutputUsage = {
  prompt_tokens: 'usage.input_tokens',
  completion_tokens: 'usage.output_tokens',
  total_tokens: 'usage.total_tokens',
}

/** A built-in format. Vendors' responses that it must read are fixtures of its test. */
export const defineFormat = ({
  category = 'text',
  post: path,
  postStream,
  headers = {},
  encoding,
  receives,
  body,
  ...format
}: FormatDeclaration) => ({
  ...format,
  category,
  request: {
    method: 'POST' as const,
    path,
    ...(postStream !== undefined && { stream_path: postStream }),
    headers,
    ...(encoding && { encoding }),
    ...(receives && { receives }),
    body,
  },
  samples: [],
})

/** Members of a request's body that have the same name in the data of the template. */
export const copyFields = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `{{${name}}}`]))
