import { AsyncLocalStorage } from 'node:async_hooks'
import type { Tracer, VisitWork } from '../../state/ports/tracer.ts'

/** The visit on whose behalf something is called; `tool` is null in the visit of a node. */
export type VisitNote = { id: string; tool: string | null }

/**
 * Knows which visit goes on: what is called during it is called on its behalf, through whichever service, also one of a
 * product's own.
 */
export const createVisitScope = () => {
  const scope = new AsyncLocalStorage<VisitNote>()
  const toNote = ({ id, kind, name }: VisitWork): VisitNote => ({ id, tool: kind === 'tool' ? name : null })
  return {
    /** The visit that goes on; null outside of any. */
    readVisit: (): VisitNote | null => scope.getStore() ?? null,
    /** A tracer that opens the scope for visits. */
    withVisits: (tracer: Tracer): Tracer => ({
      ...tracer,
      visit: (about, work) => scope.run(toNote(about), () => tracer.visit(about, work)),
    }),
    /** Until then each promise of the process looks here for a visit. */
    close: async (): Promise<void> => scope.disable(),
  }
}
