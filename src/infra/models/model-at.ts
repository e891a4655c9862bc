import type { ModelEntry } from './ports.ts'

/** What a server may be remembered by: its endpoint and what the model is called there. */
export const modelAt = ({ endpoint, upstream_name }: ModelEntry): string => `${endpoint.id} ${upstream_name}`
