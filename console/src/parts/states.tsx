import { Component, type ReactNode } from 'react'
import { ApiError } from '../api.ts'
import { useTexts } from '../i18n/index.ts'

export const Loading = (): ReactNode => <p className="quiet">{useTexts().t.loading}</p>

/** What went wrong and what to do about it. */
export const Problem = ({ error, onRetry }: { error: Error; onRetry?: () => void }): ReactNode => {
  const { t } = useTexts()
  const { status, code, remedy } = error instanceof ApiError ? error : new ApiError(-1, '', '')
  return (
    <div role="alert" className="problem">
      <strong>{status === 0 ? t.unreachable : status === 403 ? t.noAccess : t.failed}</strong>
      {error.message && <p className="text">{error.message}</p>}
      {remedy && <p className="text">→ {remedy}</p>}
      {code && status > 0 && <p className="quiet">{code}</p>}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          {t.tryAgain}
        </button>
      )}
    </div>
  )
}

/** Keeps a failure of one part away from the others. */
export class Guard extends Component<{ children: ReactNode; message: string }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null }
  static getDerivedStateFromError(error: Error) {
    return { error }
  }
  override render(): ReactNode {
    const { error } = this.state
    return error ? (
      <Problem error={new Error(`${this.props.message}\n${error.message}`)} />
    ) : (
      this.props.children
    )
  }
}
