import type { Metrics } from '../infra/telemetry/metrics.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Tracer } from '../state/ports/tracer.ts'

/** A tracer that also counts the calls of tools: each that appended an action, with its time and its error. */
export const withToolMetrics = (
  tracer: Tracer,
  metrics: Pick<Metrics, 'toolCalled'>,
  clock: Pick<Clock, 'monotonicMs'>,
): Tracer => ({
  ...tracer,
  visit: (about, work) =>
    about.kind === 'node'
      ? tracer.visit(about, work)
      : tracer.visit(about, (note) => {
          const since = clock.monotonicMs()
          return work((facts) => {
            if (facts.action_id !== null)
              metrics.toolCalled(about.name, clock.monotonicMs() - since, facts.code)
            note(facts)
          })
        }),
})
