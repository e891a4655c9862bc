import type { RunLog } from '../../state/ports.ts'

/**
 * The log of a run, and when nothing of it is between the first byte of a side effect and the action that records it. Who
 * stops a run there makes a question for a person of what would be known in a moment.
 */
export const watchActing = (log: RunLog): { log: RunLog; recorded(): Promise<void> } => {
  const waiting: (() => void)[] = []
  let isActing = false
  const over = (): void => {
    isActing = false
    for (const tell of waiting.splice(0)) tell()
  }
  return {
    log: {
      ...log,
      async effect(...asked) {
        isActing = true
        try {
          return await log.effect(...asked)
        } catch (error) {
          over()
          throw error
        }
      },
      async append(entry) {
        await log.append(entry)
        if (entry.effect) over()
      },
    },
    recorded: () => (isActing ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
  }
}
