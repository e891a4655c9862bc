import type { Log } from '../../state/ports/log.ts'
import { settlesWithin } from './timeouts.ts'

/** Closes what was opened, in reverse order; an error of one does not keep the others open. */
export const createClosers = () => {
  const closers: (() => Promise<void>)[] = []
  return {
    add(close: () => Promise<void>): void {
      closers.push(close)
    },
    /** Disposes of it at the end. */
    use(resource: AsyncDisposable): void {
      closers.push(async () => resource[Symbol.asyncDispose]())
    },
    /** Closes everything once; throws all errors together at the end. */
    async close(): Promise<void> {
      const errors: unknown[] = []
      for (const close of closers.splice(0).reverse())
        await close().catch((error: unknown) => errors.push(error))
      if (errors.length > 0) throw new AggregateError(errors, 'not everything could be closed')
    },
  }
}

/** Closes everything; returns after `timeoutMs` at the latest, and logs what could not be closed. */
export const closeWithin = async (
  { close }: Pick<Closers, 'close'>,
  timeoutMs: number,
  log: Log,
): Promise<void> => {
  const closed = close().catch((error: unknown) => log.warn({ error: String(error) }, 'closing failed'))
  await settlesWithin(closed, timeoutMs)
}

/** See `createClosers`. */
export type Closers = ReturnType<typeof createClosers>
