import { z } from 'zod'
import { writeJson } from '../json.ts'
import { type ReadResult, readBy } from '../violations.ts'

const partsSchema = z.looseObject({
  parts: z.array(z.looseObject({ data: z.record(z.string(), z.unknown()).nullish() })),
})

/** A value of a data part: its key, such as `ap2.mandates.CartMandate`, and its JSON text with all numbers and nulls as received. */
export type DataPartValue = { key: string; raw: string }

/** All values of all data parts of an A2A message or artifact: peers put several into one part (AP2.md 1.5, row 9). */
export const readDataParts = (raw: string): ReadResult<DataPartValue[]> => {
  const read = readBy(partsSchema, raw)
  if (!read.ok) return read
  const value = read.value.parts.flatMap(({ data }) =>
    Object.entries(data ?? {}).map(([key, member]) => ({ key, raw: writeJson(member) })),
  )
  return { ...read, value }
}
