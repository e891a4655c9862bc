import { type ReactNode, useMemo } from 'react'
import { useTexts } from '../i18n/index.ts'
import { Drawing } from '../parts/drawing.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { ItemsTable } from '../parts/table.tsx'
import { useGraph } from '../parts/use-graph.ts'

/** The graph as it is built here: a picture, and every node and tool in words. */
export default function GraphPage(): ReactNode {
  const { t } = useTexts()
  const graph = useGraph()
  const drawing = useMemo(() => {
    const nodes = graph.data?.nodes ?? []
    const names = new Set(nodes.map(({ name }) => name))
    return {
      boxes: nodes.map(({ name, kind }) => ({
        id: name,
        text: name,
        look: kind === 'node' ? 'visited' : 'plain',
      })),
      arrows: nodes.flatMap(({ name, next }) =>
        next.filter((to) => names.has(to)).map((to) => ({ from: name, to })),
      ),
    }
  }, [graph.data])
  if (graph.isPending) return <Loading />
  if (graph.error) return <Problem error={graph.error} onRetry={() => void graph.refetch()} />
  return (
    <>
      <h1>{t.graph}</h1>
      <Drawing {...drawing} label={t.graph} />
      <ItemsTable
        label={t.details}
        items={graph.data.nodes}
        columns={['name', 'kinds', 'description', 'reads', 'writes']}
      />
    </>
  )
}
