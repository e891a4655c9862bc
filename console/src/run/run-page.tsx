import { lazy, type ReactNode, Suspense } from 'react'
import { ApiError } from '../api.ts'
import { showMs, showNumber, toMs, toPlain } from '../format.ts'
import { useTexts } from '../i18n/index.ts'
import { Answer } from '../parts/answer.tsx'
import { CopyCurl, Download, JsonText, Status, Text, Time } from '../parts/basics.tsx'
import { To } from '../parts/link.tsx'
import { Guard, Loading, Problem } from '../parts/states.tsx'
import { useBusiness, useParams, useSearch } from '../router.tsx'
import { useMayWrite } from '../session.tsx'
import { ActionDetail } from './action-detail.tsx'
import { ActionList } from './action-list.tsx'
import { Payments } from './payments.tsx'
import { PromptView } from './prompt-view.tsx'
import { RunActs } from './run-acts.tsx'
import { StateView } from './state-view.tsx'
import { Timeline } from './timeline.tsx'
import { UsageView } from './usage-view.tsx'
import { hasEnded, type LiveRun, useLiveRun } from './use-live-run.ts'

// loaded when first shown: dagre, which lays out both, is a third of all code
const RunGraph = lazy(() => import('./run-graph.tsx'))
const Todos = lazy(() => import('./todos.tsx'))

const tabs = ['timeline', 'actions', 'graph', 'state', 'todos', 'prompt', 'usage', 'payments'] as const
type Tab = (typeof tabs)[number]

const Facts = ({ live }: { live: LiveRun }): ReactNode => {
  const { t } = useTexts()
  const { run } = live
  if (!run) return null
  const ms = toMs(run.started_at, run.ended_at)
  return (
    <dl className="facts">
      <div>
        <dt>{t.status}</dt>
        <dd>
          <Status of={run.status} />
          {!hasEnded(run) && <span className="quiet"> {live.isConnected ? t.live : t.reconnecting}</span>}
        </dd>
      </div>
      {run.finish_reason && (
        <div>
          <dt>{t.finishReason}</dt>
          <dd>{run.finish_reason}</dd>
        </div>
      )}
      <div>
        <dt>{t.created}</dt>
        <dd>
          <Time at={run.created_at} />
        </dd>
      </div>
      <div>
        <dt>{t.took}</dt>
        <dd className="num">{ms === null ? '–' : showMs(ms)}</dd>
      </div>
      <div>
        <dt>{t.tokensUsed}</dt>
        <dd className="num">{showNumber(run.usage.total_tokens)}</dd>
      </div>
      <div>
        <dt>{t.user}</dt>
        <dd>
          <To page="runs" search={{ user_id: run.user_id }}>
            {run.user_id}
          </To>
        </dd>
      </div>
      <div>
        <dt>{t.session}</dt>
        <dd>
          <To page={`sessions/${encodeURIComponent(run.session_id)}`}>{run.session_id}</To> ({t.turn}{' '}
          {run.turn})
        </dd>
      </div>
      {run.retry_of && (
        <div>
          <dt>{t.previous}</dt>
          <dd>
            <To page={`runs/${encodeURIComponent(run.retry_of)}`}>{run.retry_of}</To>
          </dd>
        </div>
      )}
    </dl>
  )
}

/** What matters now: the error, the question, what is being waited for. */
const Now = ({ live }: { live: LiveRun }): ReactNode => {
  const { t } = useTexts()
  const mayWrite = useMayWrite()
  const { run, writing } = live
  if (!run) return null
  return (
    <>
      {run.error && (
        <div className="problem">
          <strong>{run.error.code}</strong>
          {run.error.node && <span> · {run.error.node}</span>}
          <p>
            <Text>{run.error.message}</Text>
          </p>
          {run.error.detail !== undefined && <JsonText value={run.error.detail} label={t.error} />}
        </div>
      )}
      {run.retry_at && (
        <p className="notice">
          {t.waitsForModel} <Time at={run.retry_at} />. {run.retry_reason?.message}
        </p>
      )}
      {run.input_request && (
        <section className="card">
          <h2>{t.question}</h2>
          <Answer question={{ ...run.input_request, run_id: run.id }} mayWrite={mayWrite} />
        </section>
      )}
      {run.consent_request && <p className="notice">{t.consentWaits}</p>}
      {run.operator_request && (
        <p className="notice">
          {t.operatorWaits} {run.operator_request.error}
        </p>
      )}
      {writing && <pre className="writing">{`${writing.node}: ${toPlain(writing.text)}`}</pre>}
    </>
  )
}

export default function RunPage(): ReactNode {
  const { t } = useTexts()
  const { run: id = '' } = useParams()
  const business_id = useBusiness()
  const [search, change] = useSearch()
  const live = useLiveRun(id, business_id)
  const { run, actions, error } = live
  const tab = tabs.find((name) => name === search.tab) ?? 'timeline'
  const selected = actions.find((action) => String(action.id) === search.action)
  const select = (action: number) => change({ action: String(action) }, true)
  if (error instanceof ApiError && error.status === 404)
    return (
      <div role="alert" className="problem">
        <strong>{t.deleted}</strong>
        <p>
          <code>{id}</code>
        </p>
        <To page="runs">{t.backToRuns}</To>
      </div>
    )
  if (!run) return error ? <Problem error={error} /> : <Loading />
  const views: Record<Tab, () => ReactNode> = {
    timeline: () => <Timeline actions={actions} run={run} selected={selected?.id} onSelect={select} />,
    actions: () => <ActionList actions={actions} selected={selected?.id} onSelect={select} />,
    graph: () => <RunGraph actions={actions} isOpen={!hasEnded(run)} />,
    state: () => <StateView run={run} last={actions.at(-1)?.id ?? 0} />,
    todos: () => <Todos todos={live.todos} />,
    prompt: () => <PromptView actions={actions} run={run} selected={selected} />,
    usage: () => <UsageView actions={actions} run={run} />,
    payments: () => <Payments run={run} actions={actions} />,
  }
  return (
    <>
      <div className="row">
        <h1 className="cut">
          <Text most={200}>{run.prompt.trim() || run.id}</Text>
        </h1>
      </div>
      <div className="row">
        <code>{run.id}</code>
        <span className="grow" />
        <RunActs run={run} />
        <CopyCurl path={`/v1/runs/${run.id}`} options={{ query: { business_id } }} />
        <Download name={run.id} value={{ run, actions }} />
      </div>
      {error && <Problem error={error} />}
      <Facts live={live} />
      <Now live={live} />
      {run.prompt.length > 200 && (
        <details>
          <summary>{t.prompt}</summary>
          <Text>{run.prompt}</Text>
        </details>
      )}
      {run.answer !== null && (
        <section className="card">
          <h2>{t.answer}</h2>
          <Text>{run.answer}</Text>
        </section>
      )}
      <nav className="tabs" aria-label={t.run}>
        {tabs.map((name) => (
          <button
            key={name}
            type="button"
            aria-current={name === tab ? 'page' : undefined}
            onClick={() => change({ tab: name })}
          >
            {t[name]}
            {name === 'actions' && <span className="num quiet"> {actions.length}</span>}
          </button>
        ))}
      </nav>
      <div className={selected ? 'split' : ''}>
        <div className="view">
          <Guard key={tab} message={t.crashed}>
            <Suspense fallback={<Loading />}>{views[tab]()}</Suspense>
          </Guard>
        </div>
        {selected && (
          <ActionDetail
            key={selected.id}
            action={selected}
            run={run}
            onClose={() => change({ action: '' }, true)}
          />
        )}
      </div>
    </>
  )
}
