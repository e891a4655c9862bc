/** What was opened, to be closed in the reverse order; a fault of one does not keep the others open. */
export const createClosers = () => {
  const closers: (() => Promise<void>)[] = []
  return {
    add(close: () => Promise<void>): void {
      closers.push(close)
    },
    /** Closes everything once; throws the faults together at the end. */
    async close(): Promise<void> {
      const faults: unknown[] = []
      for (const close of closers.splice(0).reverse())
        await close().catch((fault: unknown) => faults.push(fault))
      if (faults.length > 0) throw new AggregateError(faults, 'not everything could be closed')
    },
  }
}

export type Closers = ReturnType<typeof createClosers>
