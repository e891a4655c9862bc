import type { Json } from '../../../state/runtime-state.ts'
import { dateIn } from './facts.ts'
import type { Finding } from './figures.ts'
import type { Piece } from './read-request.ts'

/** The bare value of a finding for a piece of the asked type; undefined when it has none. */
const pieceValue = (type: string, finding: Finding): Json | undefined => {
  if (type === 'number') return finding.number
  if (type === 'list') return finding.names && finding.names.length > 0 ? [...finding.names] : undefined
  if (type === 'table') return finding.rows && finding.rows.length > 0 ? [...finding.rows] : undefined
  if (type === 'json') return (finding.rows ? [...finding.rows] : undefined) ?? finding.number ?? finding.name
  if (type === 'boolean')
    return finding.rows
      ? finding.rows.length > 0
      : finding.number === undefined
        ? undefined
        : finding.number > 0
  if (type === 'date') return dateIn([finding.name ?? '', finding.text])
  return finding.name ?? finding.text.replaceAll('**', '')
}

/** The lines the output role reads: `- id: JSON` under "Pieces:". */
export const pieceLines = (
  items: readonly { piece: Piece | null }[],
  steps: readonly { finding: Finding }[],
): string[] => {
  const lines = items.flatMap(({ piece }, i) => {
    const finding = steps[i]?.finding
    if (!piece || !finding || (finding.empty && finding.number === undefined)) return []
    const value = pieceValue(piece.type, finding)
    return value === undefined ? [] : [`- ${piece.id}: ${JSON.stringify(value)}`]
  })
  return lines.length > 0 ? [`Pieces:\n${lines.join('\n')}`] : []
}
