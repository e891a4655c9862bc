import { useInfiniteQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call } from '../api.ts'
import { useTexts } from '../i18n/index.ts'
import { CopyCurl, Download, JsonText, Text } from '../parts/basics.tsx'
import { More } from '../parts/more.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { useBusiness } from '../router.tsx'
import type { Action, Json, Run } from '../types.ts'

type Message = { role: string; content: string; [more: string]: Json }
type Prompt = {
  role: string
  model: string | null
  origin: 'as_sent' | 'rebuilt_differs' | 'rebuilt'
  messages: Message[]
  total: number
  has_more: boolean
}

/** What an action sent to a model first: the selected one, else the first that called a model. */
export const PromptView = (props: {
  actions: Action[]
  run: Run
  selected: Action | undefined
}): ReactNode => {
  const { t } = useTexts()
  const business_id = useBusiness()
  const { actions, run } = props
  const action = props.selected ?? actions.find(({ node }) => node === 'planner') ?? actions[0]
  const path = `/v1/sessions/${encodeURIComponent(run.session_id)}/actions/${action?.id}/prompt`
  const prompt = useInfiniteQuery({
    queryKey: ['prompt', path, business_id],
    queryFn: ({ pageParam, signal }) =>
      call<Prompt>(path, { query: { business_id, after: pageParam }, signal }),
    initialPageParam: 0,
    getNextPageParam: (last, pages) =>
      last.has_more ? pages.reduce((sum, { messages }) => sum + messages.length, 0) : null,
    enabled: action !== undefined,
  })
  if (!action) return <p role="status">{t.noActions}</p>
  if (prompt.isPending) return <Loading />
  if (prompt.error) return <Problem error={prompt.error} onRetry={() => void prompt.refetch()} />
  const [first] = prompt.data.pages
  const messages = prompt.data.pages.flatMap((page) => page.messages)
  return (
    <>
      <div className="row">
        <h2>
          {action.id} · {action.node}
        </h2>
        <span className="quiet">
          {first?.role} {first?.model ?? ''}
        </span>
        {first && (
          <span className={first.origin === 'as_sent' ? 'mark calm' : 'mark'}>{t[first.origin]}</span>
        )}
        <span className="grow" />
        <CopyCurl path={path} options={{ query: { business_id } }} />
        <Download name={`${run.id}-${action.id}-prompt`} value={messages} />
      </div>
      {messages.map(({ role, content, ...more }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: messages have no id and never move
        <article key={at} className="card" aria-label={`${at + 1} ${role}`}>
          <p className="quiet">
            {at + 1} · {role}
          </p>
          <Text>{content}</Text>
          {Object.keys(more).length > 0 && <JsonText value={more} label={`${at + 1} ${role}`} />}
        </article>
      ))}
      <More pages={prompt} />
    </>
  )
}
