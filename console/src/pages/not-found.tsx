import type { ReactNode } from 'react'
import { useTexts } from '../i18n/index.ts'
import { To } from '../parts/link.tsx'

export const NotFound = (): ReactNode => {
  const { t } = useTexts()
  return (
    <>
      <h1>{t.notFound}</h1>
      <To page="runs">{t.backToRuns}</To>
    </>
  )
}
