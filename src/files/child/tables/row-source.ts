/** The rows of one table of a file, in batches, without the header. */
export type RowSource = {
  /** The sheet or the path inside the file; null when the file is the table. */
  part: string | null
  header: readonly string[]
  /** The rows below the header; a shorter row lacks its last cells. May be called again. */
  batches(): AsyncIterable<string[][]>
  /** What could not be read, complete once all rows were. */
  notes(): string[]
}

/** Names for columns: trimmed, not empty, unique regardless of case. */
export const toColumnNames = (cells: readonly string[]): string[] => {
  const taken = new Set<string>()
  const lastCounts = new Map<string, number>()
  return cells.map((cell, index) => {
    const base = cell.replace(/\s+/g, ' ').trim().slice(0, 120) || `column_${index + 1}`
    let name = base
    let count = lastCounts.get(base.toLowerCase()) ?? 1
    while (taken.has(name.toLowerCase())) {
      count += 1
      name = `${base}_${count}`
    }
    lastCounts.set(base.toLowerCase(), count)
    taken.add(name.toLowerCase())
    return name
  })
}

const looksLikeData = /^[-+]?[\d.,]+%?$|^\d{4}-\d\d?-\d\d?/

const isFilled = (cells: readonly string[]): boolean => cells.some((cell) => cell.trim() !== '')

/** A first row of words is the header; one with numbers is data. */
const isHeader = (cells: readonly string[]): boolean => !cells.some((cell) => looksLikeData.test(cell.trim()))

/** A table whose first row may be its header. Null: it has no rows. `open` reads the rows from the start each time. */
export const openRowSource = async (
  part: string | null,
  open: () => AsyncIterable<string[][]>,
  notes: () => string[] = () => [],
): Promise<RowSource | null> => {
  let first: string[] | undefined
  for await (const batch of open()) {
    first = batch.find(isFilled)
    if (first) break
  }
  if (!first) return null
  const hasHeader = isHeader(first)
  const header = toColumnNames(hasHeader ? first : first.map(() => ''))
  return {
    part,
    header,
    async *batches() {
      let skip = hasHeader
      for await (const batch of open()) {
        const rows = batch.filter(isFilled)
        if (skip && rows.length > 0) {
          rows.shift()
          skip = false
        }
        if (rows.length > 0) yield rows
      }
    },
    notes,
  }
}
