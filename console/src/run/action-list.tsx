import type { ReactNode } from 'react'
import { useTexts } from '../i18n/index.ts'
import { Rows } from '../parts/rows.tsx'
import type { Action } from '../types.ts'
import { toRow } from './timeline.tsx'

type Props = { actions: Action[]; selected: number | undefined; onSelect(id: number): void }

export const ActionList = ({ actions, selected, onSelect }: Props): ReactNode => {
  const { t } = useTexts()
  if (actions.length === 0) return <p role="status">{t.noActions}</p>
  return <Rows items={actions} label={t.actions} selected={selected} onSelect={onSelect} render={toRow} />
}
