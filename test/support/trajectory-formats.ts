import { z } from 'zod'

/**
 * The rules of Harbor's models of the Agent Trajectory Interchange Format 1.7, which forbid members that they do not name, and those of
 * OpenAI for a line of a file for fine-tuning by supervision.
 */

const count = z.int().nonnegative()
const extra = z.record(z.string(), z.json()).optional()
const result = z.strictObject({
  source_call_id: z.string().optional(),
  content: z.string().optional(),
  extra,
})

const stepSchema = z
  .strictObject({
    step_id: z.int().min(1),
    timestamp: z.iso.datetime().optional(),
    source: z.enum(['system', 'user', 'agent']),
    message: z.string(),
    model_name: z.string().optional(),
    reasoning_content: z.string().optional(),
    tool_calls: z
      .array(
        z.strictObject({
          tool_call_id: z.string(),
          function_name: z.string(),
          arguments: z.record(z.string(), z.json()),
          extra,
        }),
      )
      .optional(),
    observation: z.strictObject({ results: z.array(result) }).optional(),
    metrics: z
      .strictObject({
        prompt_tokens: count.optional(),
        completion_tokens: count.optional(),
        cached_tokens: count.optional(),
        cost_usd: z.number().optional(),
        extra,
      })
      .optional(),
    is_copied_context: z.boolean().optional(),
    llm_call_count: count.optional(),
    extra,
  })
  .superRefine((step, context) => {
    const ofAgents = ['model_name', 'reasoning_content', 'tool_calls', 'metrics'] as const
    if (step.source !== 'agent' && ofAgents.some((name) => step[name] !== undefined))
      context.addIssue(`step ${step.step_id} of ${step.source} has a field of agents`)
    if (step.llm_call_count === 0 && (step.metrics || step.reasoning_content !== undefined))
      context.addIssue(`step ${step.step_id} called no model and has its metrics`)
    const ids = new Set(step.tool_calls?.map(({ tool_call_id }) => tool_call_id))
    if (ids.size !== (step.tool_calls?.length ?? 0))
      context.addIssue(`step ${step.step_id} repeats a call id`)
    for (const { source_call_id } of step.observation?.results ?? [])
      if (source_call_id !== undefined && !ids.has(source_call_id))
        context.addIssue(`step ${step.step_id} has a result of ${source_call_id}, which it does not call`)
  })

const toolSchema = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string().regex(/^[\w-]{1,64}$/),
    description: z.string().optional(),
    parameters: z.looseObject({ type: z.literal('object') }),
  }),
})

const atifSchema = z
  .strictObject({
    schema_version: z.literal('ATIF-v1.7'),
    session_id: z.string(),
    trajectory_id: z.string(),
    agent: z.strictObject({
      name: z.string(),
      version: z.string(),
      model_name: z.string().optional(),
      tool_definitions: z.array(toolSchema),
      extra,
    }),
    steps: z.array(stepSchema).min(1),
    final_metrics: z.strictObject({
      total_prompt_tokens: count,
      total_completion_tokens: count,
      total_cached_tokens: count.optional(),
      total_cost_usd: z.number().optional(),
      total_steps: count,
      extra,
    }),
    extra,
  })
  .refine(({ steps }) => steps.every(({ step_id }, index) => step_id === index + 1), 'steps count from 1')
  .refine(({ steps, final_metrics }) => final_metrics.total_steps === steps.length, 'total_steps counts them')

export type Atif = z.infer<typeof atifSchema>

/** Reads a trajectory by the rules of the format; throws what breaks one. */
export const readAtif = (text: string): Atif => atifSchema.parse(JSON.parse(text))

const text = z.string()
const weight = z.literal([0, 1]).optional()
const callSchema = z.strictObject({
  id: text.min(1),
  type: z.literal('function'),
  function: z.strictObject({
    name: text,
    arguments: text.refine((json) => z.record(z.string(), z.json()).safeParse(JSON.parse(json)).success),
  }),
})
const messageSchema = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: text.min(1) }),
  z.strictObject({ role: z.literal('user'), content: text }),
  z.strictObject({
    role: z.literal('assistant'),
    content: text.optional(),
    tool_calls: z.array(callSchema).min(1).optional(),
    weight,
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: text, content: text }),
])

const exampleSchema = z
  .strictObject({
    messages: z.array(messageSchema).min(1),
    tools: z.array(toolSchema).min(1),
    run_id: text,
    relevance: z.array(z.strictObject({ tool_call_id: text, relevance: z.number() })),
    status: text,
    finish_reason: text.nullable(),
    todos: z.array(z.strictObject({ id: text, status: text })),
    usage: z.strictObject({ prompt_tokens: count, completion_tokens: count, total_tokens: count }),
    cost: z.array(z.strictObject({ currency: text, cost: z.number() })),
  })
  .superRefine(({ messages, tools }, context) => {
    const names = new Set(tools.map((tool) => tool.function.name))
    let open: string[] = []
    for (const message of messages) {
      if (message.role === 'tool') {
        // results follow their calls, each once
        if (open.shift() !== message.tool_call_id)
          context.addIssue(`${message.tool_call_id} was not called here`)
        continue
      }
      if (open.length > 0) context.addIssue(`${open.join(', ')} has no result`)
      const calls = (message.role === 'assistant' && message.tool_calls) || []
      if (message.role === 'assistant' && calls.length === 0 && message.content === undefined)
        context.addIssue('an assistant message has nothing')
      for (const call of calls)
        if (!names.has(call.function.name)) context.addIssue(`${call.function.name} is not among the tools`)
      open = calls.map(({ id }) => id)
    }
    if (open.length > 0) context.addIssue(`${open.join(', ')} has no result`)
  })

export type OpenAiExample = z.infer<typeof exampleSchema>

/** Reads a line of a file for fine-tuning by the rules of the format; throws what breaks one. */
export const readOpenAiExample = (line: string): OpenAiExample => {
  if (!line.endsWith('\n') || line.indexOf('\n') !== line.length - 1) throw new Error('it is not one line')
  return exampleSchema.parse(JSON.parse(line))
}
