import { type ReactNode, useMemo } from 'react'
import { showMs } from '../format.ts'
import { useTexts } from '../i18n/index.ts'
import { Text } from '../parts/basics.tsx'
import { Rows } from '../parts/rows.tsx'
import type { Action, Run } from '../types.ts'
import { type TimeScale, toTimeScale } from './time-scale.ts'

const laneHeight = 10
const most = 12

/** All actions on one line of time: one shape for all, so that thousands cost what one does. */
const Strip = ({ scale }: { scale: TimeScale }): ReactNode => {
  const { t } = useTexts()
  const lanes = Math.min(scale.lanes, most)
  const shape = [...scale.bars.values()]
    .map(({ from, to, lane }) => {
      const width = Math.max(1, (to - from) * 1000)
      const y = (lane % most) * laneHeight + 1
      return `M${(from * 1000).toFixed(1)} ${y}h${width.toFixed(1)}v${laneHeight - 2}h-${width.toFixed(1)}z`
    })
    .join('')
  return (
    <div className="strip">
      <svg
        viewBox={`0 0 1000 ${lanes * laneHeight}`}
        preserveAspectRatio="none"
        height={lanes * laneHeight}
        role="img"
        aria-label={`${t.timeline}: ${showMs(scale.ms)}`}
      >
        {scale.idles.map(({ from, to }) => (
          <rect key={from} x={from * 1000} width={(to - from) * 1000} height="100%" className="idle" />
        ))}
        <path d={shape} className="bars" />
      </svg>
      <div className="idles">
        {scale.idles.map(({ from, to, ms }) => (
          <span key={from} style={{ left: `clamp(36px, ${((from + to) / 2) * 100}%, 100% - 36px)` }}>
            {t.idle} {showMs(ms)}
          </span>
        ))}
      </div>
    </div>
  )
}

type Props = { actions: Action[]; run: Run; selected: number | undefined; onSelect(id: number): void }

/** What took how long, and what happened at the same time. */
export const Timeline = ({ actions, run, selected, onSelect }: Props): ReactNode => {
  const { t } = useTexts()
  const scale = useMemo(() => toTimeScale(actions, run.created_at, run.ended_at), [actions, run])
  if (actions.length === 0) return <p role="status">{t.noActions}</p>
  return (
    <>
      <Strip scale={scale} />
      <Rows
        items={actions}
        label={t.timeline}
        selected={selected}
        onSelect={onSelect}
        render={(action, at) => {
          const bar = scale.bars.get(action.id)
          const before = actions[at - 1]
          const isRetried =
            before?.attempt !== action.attempt && before?.attempt != null && action.attempt != null
          return (
            <>
              <span className="num quiet number">{action.id}</span>
              <b className="node">{action.node}</b>
              <span className="marks">
                {isRetried && (
                  <span className="mark">{before?.worker === action.worker ? t.retried : t.takenOver}</span>
                )}
                {bar?.isParallel && <span className="mark calm">{t.parallel}</span>}
                {typeof action.result.error === 'string' && <span className="mark bad">{t.error}</span>}
              </span>
              <span className="track">
                {bar && (
                  <span
                    className="bar"
                    style={{ left: `${bar.from * 100}%`, width: `max(2px, ${(bar.to - bar.from) * 100}%)` }}
                  />
                )}
              </span>
              <span className="num end ms">{action.ms === null ? '–' : showMs(action.ms)}</span>
            </>
          )
        }}
      />
    </>
  )
}

/** The same actions with what each says of itself. */
export const toRow = (action: Action): ReactNode => (
  <>
    <span className="num quiet number">{action.id}</span>
    <b className="node">{action.node}</b>
    <span className="cut grow">
      <Text most={200}>{action.summary}</Text>
    </span>
    <span className="num end ms">{action.ms === null ? '–' : showMs(action.ms)}</span>
  </>
)
