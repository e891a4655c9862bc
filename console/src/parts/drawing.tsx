import { graphlib, layout } from '@dagrejs/dagre'
import { type ReactNode, useMemo } from 'react'
import { Scroll } from './basics.tsx'

export type Box = { id: string; text: string; note?: string; look?: string }
export type Arrow = { from: string; to: string; look?: string }

const letter = 7.2

/** A diagram of boxes and arrows with the layout of dagre. The page lists the same content as text for screen readers. */
export const Drawing = (props: { boxes: Box[]; arrows: Arrow[]; label: string }): ReactNode => {
  const { boxes, arrows, label } = props
  const drawn = useMemo(() => {
    const graph = new graphlib.Graph()
    graph.setGraph({ rankdir: 'LR', nodesep: 10, ranksep: 40, marginx: 8, marginy: 8 })
    graph.setDefaultEdgeLabel(() => ({}))
    for (const { id, text, note } of boxes)
      graph.setNode(id, {
        width: Math.max(60, Math.max(text.length, note?.length ?? 0) * letter + 20),
        height: note ? 40 : 26,
      })
    for (const { from, to } of arrows) graph.setEdge(from, to)
    layout(graph)
    return graph
  }, [boxes, arrows])
  const { width = 0, height = 0 } = drawn.graph()
  return (
    <Scroll label={label} className="drawing">
      <svg width={width} height={height} role="img" aria-label={label}>
        <defs>
          <marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">
            <path d="M0 0L6 3L0 6z" className="tip" />
          </marker>
        </defs>
        {arrows.map(({ from, to, look }) => {
          const points: { x: number; y: number }[] = drawn.edge(from, to)?.points ?? []
          const line = points
            .map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`)
            .join('')
          return (
            <path key={`${from} ${to}`} d={line} className="arrow" data-look={look} markerEnd="url(#tip)" />
          )
        })}
        {boxes.map(({ id, text, note, look }) => {
          const { x, y, width, height } = drawn.node(id) as Record<'x' | 'y' | 'width' | 'height', number>
          return (
            <g
              key={id}
              transform={`translate(${x - width / 2} ${y - height / 2})`}
              className="box"
              data-look={look}
            >
              <rect width={width} height={height} rx={5} />
              <text x={width / 2} y={note ? 17 : 17} textAnchor="middle">
                {text}
              </text>
              {note && (
                <text x={width / 2} y={32} textAnchor="middle" className="note">
                  {note}
                </text>
              )}
            </g>
          )
        })}
      </svg>
    </Scroll>
  )
}
