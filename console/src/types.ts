/** What the API returns, as far as pages read it; docs/contract.md describes each field. */

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
export const statuses = ['queued', 'running', 'input_required', 'completed', 'failed', 'cancelled'] as const
export type RunStatus = (typeof statuses)[number]
export type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number }

export type InputRequest = {
  id: string
  question: string
  schema: { [name: string]: Json }
  options: string[]
  expires_at: string
  secret?: true
}

export type Run = {
  id: string
  session_id: string
  business_id: string
  user_id: string
  turn: number
  prompt: string
  status: RunStatus
  finish_reason: string | null
  answer: string | null
  output_structure: Json[]
  todos: Record<'pending' | 'processing' | 'completed' | 'failed', number>
  usage: Usage
  error: { code: string; message: string; node?: string; detail?: Json } | null
  input_request: InputRequest | null
  consent_request: { payment_id: string; expires_at: string } | null
  operator_request: { effect_id: string; error: string } | null
  retry_at: string | null
  retry_reason: { code: string; message: string } | null
  retry_of: string | null
  metadata: Record<string, Json>
  created_at: string
  started_at: string | null
  ended_at: string | null
}

export type ModelCall = {
  at: string
  role: string
  model: string
  vendor: string | null
  status: string
  error_code: string | null
  ms: number
  tokens: number
  cost: number
  currency: string | null
}

export type Action = {
  id: number
  node: string
  preparation: string
  summary: string
  result: Record<string, Json>
  usage: Usage
  next: string[]
  run_id: string
  turn: number
  at: string
  started_at: string | null
  ms: number | null
  attempt: number | null
  worker: string | null
  /** Absent in what a stream sent: they are entered later. */
  model_calls?: ModelCall[]
}

export type Todo = {
  id: string
  task: string
  status: 'pending' | 'processing' | 'completed' | 'failed'
  dependencies: string[]
  critical_path_length: number
  retry: number
  max_retry: number
}

export type Question = InputRequest & {
  run_id: string
  session_id: string
  user_id: string
  status: string
  created_at: string
  answered_at: string | null
}

export type Session = {
  id: string
  user_id: string
  created_at: string
  updated_at: string
  turns: {
    turn: number
    run_id: string
    status: RunStatus
    prompt: string
    answer: string | null
    usage: Usage
  }[]
}
