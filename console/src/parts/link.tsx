import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { type Search, useBusiness } from '../router.tsx'

/** A link to a page of the business in the address. */
export const To = (props: {
  page: string
  search?: Search
  className?: string
  children: ReactNode
}): ReactNode => {
  const business = useBusiness()
  return (
    <Link
      to={`/${encodeURIComponent(business)}/${props.page}` as never}
      search={(props.search ?? {}) as never}
      {...(props.className && { className: props.className })}
      activeOptions={{ includeSearch: false }}
    >
      {props.children}
    </Link>
  )
}
