/** Rows of one table as they come out of a file, in batches, the header apart. `open` may be called again. */
export type RowSource = {
  /** The sheet or the path inside the file; null when the file is the table. */
  part: string | null
  header: readonly string[]
  /** Rows under the header; shorter ones lack their last cells. */
  batches(): AsyncIterable<string[][]>
  /** What did not go well, known once all rows were read. */
  notes(): string[]
}

/** Names of columns: trimmed, none empty, none twice. */
export const columnNames = (cells: readonly string[]): string[] => {
  const taken = new Set<string>()
  return cells.map((cell, index) => {
    const wanted = cell.replace(/\s+/g, ' ').trim().slice(0, 120) || `column_${index + 1}`
    let name = wanted
    for (let count = 2; taken.has(name.toLowerCase()); count += 1) name = `${wanted}_${count}`
    taken.add(name.toLowerCase())
    return name
  })
}

const looksLikeData = /^[-+]?[\d.,]+%?$|^\d{4}-\d\d?-\d\d?/

/** A first row of words names the columns; one with figures in it is data already. */
const isHeader = (cells: readonly string[]): boolean =>
  cells.some((cell) => cell.trim() !== '') && !cells.some((cell) => looksLikeData.test(cell.trim()))

/** A table of rows that may begin with their header: its first row is looked at, and given back when it is data. */
export const withHeader = async (
  part: string | null,
  open: () => AsyncIterable<string[][]>,
  notes: () => string[] = () => [],
): Promise<RowSource | null> => {
  let first: string[] | undefined
  for await (const batch of open()) {
    first = batch.find((row) => row.some((cell) => cell.trim() !== ''))
    if (first) break
  }
  if (!first) return null
  const named = isHeader(first)
  const header = columnNames(named ? first : first.map(() => ''))
  return {
    part,
    header,
    async *batches() {
      let skip = named
      for await (const batch of open()) {
        const rows = batch.filter((row) => row.some((cell) => cell.trim() !== ''))
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
