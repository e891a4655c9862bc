import type { Json } from '../state/runtime-state.ts'

/** A message to another agent, as a claim of it has it. */
export type PushedMessage = {
  tenant: string
  push_id: string
  type: string
  webhook_id: string
  run_id: string | null
  created_at: Date
  metadata: Record<string, Json> | null
  result: { error: { message: string } | null } | null
  question: string | null
}
/** A message as another agent gets it: the headers are beside those of every webhook. Throws `secret_unreadable`. */
export type RenderPush = (
  message: PushedMessage,
) => Promise<{ body: string; headers: Record<string, string> }>
