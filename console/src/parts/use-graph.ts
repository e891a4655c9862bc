import { useQuery } from '@tanstack/react-query'
import { call } from '../api.ts'
import { useBusiness } from '../router.tsx'

export type GraphNode = {
  name: string
  kind: 'node' | 'tool'
  kinds: string[]
  description: string
  reads: string[]
  writes: string[]
  next: string[]
}

/** The graph that runs walk through. */
export const useGraph = () => {
  const business_id = useBusiness()
  return useQuery({
    queryKey: ['graph', business_id],
    queryFn: () => call<{ version: string; nodes: GraphNode[] }>('/v1/graph', { query: { business_id } }),
    staleTime: Number.POSITIVE_INFINITY,
  })
}
