import { isMasonError } from '../../../state/errors.ts'
import type { ModelWork, Tracer } from '../../../state/trace.ts'
import type { Answered } from '../call-ports.ts'
import type { ModelAsk, Registry } from '../ports.ts'
import type { ModelErrorDetail } from './failure.ts'

const workOf = ({ role, messages, input, query, stream }: ModelAsk): ModelWork => {
  const about = { role, stream, inputs: input.length }
  if (messages.length > 0) return { operation: 'chat', ...about }
  if (query !== null) return { operation: 'rerank', ...about }
  return { operation: input.length > 0 ? 'embeddings' : 'generate_content', ...about }
}

/** One call, told to the tracer: who answered, for how much, at which try. */
export const tracedCall =
  (tracer: Tracer, registry: Pick<Registry, 'view'>) =>
  (asked: ModelAsk, call: () => Promise<Answered>): Promise<Answered> =>
    tracer.model(workOf(asked), async (note) => {
      try {
        const answered = await call()
        const { model, usage, attempts, result } = answered
        const entry = registry.view.models.get(model)
        note({
          tries: attempts.length + 1,
          model,
          usage,
          finish: result.finish,
          ...(entry && { upstream: entry.upstream_name, vendor: entry.vendor.name }),
        })
        return answered
      } catch (error) {
        const detail = isMasonError(error)
          ? (error.detail as Partial<ModelErrorDetail> | undefined)
          : undefined
        if (detail?.attempts !== undefined) note({ tries: detail.attempts })
        throw error
      }
    })
