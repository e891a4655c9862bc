import { type ReactNode, useMemo, useState } from 'react'
import { useTexts } from '../i18n/index.ts'
import { Drawing } from '../parts/drawing.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useGraph } from '../parts/use-graph.ts'
import type { Action } from '../types.ts'

/** The graph with what this run visited, how often, and where it is. */
export default function RunGraph({ actions, isOpen }: { actions: Action[]; isOpen: boolean }): ReactNode {
  const { t } = useTexts()
  const graph = useGraph()
  const [isWhole, setWhole] = useState(false)
  const visits = useMemo(() => {
    const counts = new Map<string, number>()
    for (const { node } of actions) counts.set(node, (counts.get(node) ?? 0) + 1)
    return counts
  }, [actions])
  const current = useMemo(() => new Set(isOpen ? (actions.at(-1)?.next ?? []) : []), [actions, isOpen])
  const { boxes, arrows } = useMemo(() => {
    const all = graph.data?.nodes ?? []
    const nodes = isWhole ? all : all.filter(({ name }) => visits.has(name) || current.has(name))
    const names = new Set(nodes.map(({ name }) => name))
    // where a run went, also what no node names as its next
    const steps = new Set(actions.slice(1).map(({ node }, at) => `${actions[at]?.node} ${node}`))
    return {
      boxes: nodes.map(({ name }) => ({
        id: name,
        text: name,
        ...(visits.has(name) && { note: `× ${visits.get(name)}` }),
        look: current.has(name) ? 'current' : visits.has(name) ? 'visited' : 'plain',
      })),
      arrows: nodes.flatMap(({ name, next }) =>
        next
          .filter((to) => names.has(to))
          .map((to) => ({ from: name, to, look: steps.has(`${name} ${to}`) ? 'visited' : 'plain' })),
      ),
    }
  }, [graph.data, isWhole, visits, current, actions])
  if (graph.isPending) return <Loading />
  if (graph.error) return <Problem error={graph.error} onRetry={() => void graph.refetch()} />
  return (
    <>
      <label className="check">
        <input type="checkbox" checked={!isWhole} onChange={(event) => setWhole(!event.target.checked)} />{' '}
        {t.onlyVisited}
      </label>
      {current.size > 0 && (
        <p role="status">
          {t.current}: <b>{[...current].join(', ')}</b>
        </p>
      )}
      <Drawing boxes={boxes} arrows={arrows} label={t.graph} />
    </>
  )
}
