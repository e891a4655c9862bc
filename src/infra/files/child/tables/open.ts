import { openDelimited } from './delimited.ts'
import { openJson, openJsonLines } from './records.ts'
import type { RowSource } from './source.ts'
import { openWorkbook } from './workbook.ts'

export type TableFormat = 'csv' | 'xlsx' | 'json' | 'ndjson'

type Opened = { sources: RowSource[]; notes: string[]; close(): void }

/** The tables of a file. The same bytes give the same tables every time they are opened. */
export const openTables = async (
  path: string,
  name: string,
  format: TableFormat,
  bytes: number,
): Promise<Opened> => {
  const close = (): void => undefined
  switch (format) {
    case 'csv':
      return { sources: await openDelimited(path, name), notes: [], close }
    case 'xlsx':
      return { notes: [], ...(await openWorkbook(path)) }
    case 'json': {
      const { sources, faults } = await openJson(path, bytes)
      return { sources, notes: faults, close }
    }
    case 'ndjson': {
      const { sources, faults } = await openJsonLines(path)
      return { sources, notes: faults, close }
    }
  }
}
