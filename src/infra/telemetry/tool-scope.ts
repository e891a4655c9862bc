import { AsyncLocalStorage } from 'node:async_hooks'
import type { Tracer } from '../../state/ports/tracer.ts'

/**
 * Knows which tool is at work: what is called during the visit of a tool is called on its behalf, through whichever service,
 * also one of a product's own.
 */
export const createToolScope = () => {
  const scope = new AsyncLocalStorage<string>()
  return {
    /** The tool whose visit this is; null outside of any. */
    readTool: (): string | null => scope.getStore() ?? null,
    /** A tracer that opens the scope for visits of tools. */
    withTools: (tracer: Tracer): Tracer => ({
      ...tracer,
      visit: (about, work) =>
        about.kind === 'node'
          ? tracer.visit(about, work)
          : scope.run(about.name, () => tracer.visit(about, work)),
    }),
  }
}
