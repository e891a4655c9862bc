import type { Json } from '../../../state/runtime-state.ts'

/** A request template for a POST to a path under the endpoint's base URL. */
export const createPostTemplate = (
  path: string,
  body: Json,
  more: { headers?: Record<string, string>; stream_path?: string } = {},
) => ({ method: 'POST' as const, path, headers: {}, ...more, body })
