import { isDatabaseUnavailable } from './database-errors.ts'

type BatchOptions<Item, Result> = {
  maxSize: number
  maxInFlight: number
  /** What the items of a statement may have together; a larger item has a statement of its own. */
  maxBytes?: number
  bytesOf?(item: Item): number
  /** What the batches in flight may contain once; items that share a name are written in the order of their arrival. */
  listNames?(item: Item): readonly string[]
  /** Returns the result of each, in their order. An error refuses its item alone; one that is thrown fails all of them. */
  write(items: readonly Item[]): Promise<readonly (Result | Error)[]>
  /** Writes an item whose batch the database refused. */
  writeAlone(item: Item): Promise<Result>
}

/**
 * Writes what arrives together by one statement: in one turn of the event loop, or while `maxInFlight` batches are being
 * written. A flood costs one commit for many items, and a single item does not wait. An error of one costs the others no
 * more than a statement each.
 */
export const createStatementBatches = <Item, Result>(options: BatchOptions<Item, Result>) => {
  const { maxSize, maxInFlight, maxBytes = Infinity, bytesOf = () => 0 } = options
  const { listNames = () => [], write, writeAlone } = options
  type WaitingItem = { item: Item; resolve(result: Result): void; reject(error: unknown): void }
  let waiting: WaitingItem[] = []
  let inFlight = 0
  const busyNames = new Set<string>()

  /** The oldest that can share a statement. */
  const takeBatch = (): WaitingItem[] => {
    const batch: WaitingItem[] = []
    const rest: WaitingItem[] = []
    const taken = new Set(busyNames)
    let bytes = 0
    for (const next of waiting) {
      const names = listNames(next.item)
      const more = bytesOf(next.item)
      const fits =
        batch.length < maxSize &&
        (batch.length === 0 || bytes + more <= maxBytes) &&
        !names.some((name) => taken.has(name))
      if (fits) bytes += more
      ;(fits ? batch : rest).push(next)
      for (const name of names) taken.add(name)
    }
    waiting = rest
    return batch
  }

  /** Settles each on its own. Never rejects. */
  const writeBatch = async (batch: readonly WaitingItem[]): Promise<void> => {
    try {
      const results = await write(batch.map(({ item }) => item))
      for (const [at, { resolve, reject }] of batch.entries()) {
        const result = results[at]
        if (result instanceof Error) reject(result)
        else resolve(result as Result)
      }
    } catch (error) {
      // whether they were written is unknown, so none is retried
      if (isDatabaseUnavailable(error)) for (const { reject } of batch) reject(error)
      else await Promise.all(batch.map(({ item, resolve, reject }) => writeAlone(item).then(resolve, reject)))
    }
  }

  const writeNext = async (): Promise<void> => {
    if (inFlight >= maxInFlight) return
    const batch = takeBatch()
    if (batch.length === 0) return
    const names = batch.flatMap(({ item }) => listNames(item))
    for (const name of names) busyNames.add(name)
    inFlight++
    await writeBatch(batch)
    inFlight--
    for (const name of names) busyNames.delete(name)
    void writeNext()
  }

  return (item: Item): Promise<Result> =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      // after all that arrive in this turn of the event loop
      setImmediate(() => void writeNext())
    })
}
