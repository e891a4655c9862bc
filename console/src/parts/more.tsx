import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect } from 'react'
import { call, type Page, type Query } from '../api.ts'
import { followChanges } from '../event-stream.ts'
import { useTexts } from '../i18n/index.ts'

/** For queries whose key begins with 'live': they are read again when runs change. Not all changes are those of runs. */
export const live = { refetchInterval: 30_000, refetchOnWindowFocus: 'always' } as const

/** Reads what is live again while runs of the business change, at most once a second. */
export const useChanges = (business_id: string, isOn: boolean): void => {
  const client = useQueryClient()
  useEffect(() => {
    if (!isOn) return
    let isChanged = false
    let isBusy = false
    const refresh = async (): Promise<void> => {
      isChanged = true
      if (isBusy) return
      isBusy = true
      while (isChanged) {
        isChanged = false
        await client.invalidateQueries({ queryKey: ['live'] })
        await new Promise((resolve) => setTimeout(resolve, 1000))
      }
      isBusy = false
    }
    return followChanges(business_id, () => void refresh())
  }, [client, business_id, isOn])
}

/** A list of the API, page after page. */
export const usePages = <Item,>(
  path: string,
  query: Query,
  { isLive = false, enabled = true }: { isLive?: boolean; enabled?: boolean } = {},
) => {
  const pages = useInfiniteQuery({
    queryKey: [isLive ? 'live' : 'list', path, query],
    queryFn: ({ pageParam, signal }) =>
      call<Page<Item>>(path, { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor ?? null,
    enabled,
    ...(isLive && live),
  })
  return { ...pages, items: pages.data?.pages.flatMap((page) => page.data) ?? [] }
}

type Pages = { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage(): unknown }

export const More = ({ pages }: { pages: Pages }): ReactNode => {
  const { t } = useTexts()
  return pages.hasNextPage ? (
    <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
      {t.loadMore}
    </button>
  ) : null
}
