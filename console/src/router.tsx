import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  useParams as useAnyParams,
  useSearch as useAnySearch,
  useNavigate,
} from '@tanstack/react-router'
import { base } from './api.ts'
import { Layout } from './layout.tsx'
import { NotFound } from './pages/not-found.tsx'
import { RunsPage } from './pages/runs.tsx'

/** The query of the address: plain words, so that links read well and numbers stay text. */
export type Search = Record<string, string | undefined>

const parseSearch = (text: string): Search => Object.fromEntries(new URLSearchParams(text))
const stringifySearch = (search: Search): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) if (value) query.set(name, value)
  return query.size > 0 ? `?${query}` : ''
}

const root = createRootRoute({ component: Layout, notFoundComponent: NotFound })
const first = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({
      to: '/$business/runs',
      params: { business: localStorage.getItem('mason-business') ?? 'default' },
    })
  },
})
const page = <Path extends string>(path: Path, load: () => Promise<{ default: () => React.ReactNode }>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load) })

const routeTree = root.addChildren([
  first,
  createRoute({ getParentRoute: () => root, path: '/$business/runs', component: RunsPage }),
  page('/$business/runs/$run', () => import('./run/run-page.tsx')),
  page('/$business/inbox', () => import('./pages/inbox.tsx')),
  page('/$business/sessions', () => import('./pages/sessions.tsx')),
  page('/$business/sessions/$session', () => import('./pages/session-chat.tsx')),
  page('/$business/overview', () => import('./pages/overview.tsx')),
  page('/$business/usage', () => import('./pages/usage.tsx')),
  page('/$business/files', () => import('./pages/files.tsx')),
  page('/$business/memory', () => import('./pages/memory.tsx')),
  page('/$business/graph', () => import('./pages/graph.tsx')),
  page('/$business/admin/$', () => import('./admin/admin-page.tsx')),
])

export const router = createRouter({
  routeTree,
  basepath: `${base}/console`,
  parseSearch,
  stringifySearch: stringifySearch as (search: Record<string, unknown>) => string,
  scrollRestoration: true,
  defaultPreload: 'intent',
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

/** The query of the address, and a way to change some of it. */
export const useSearch = (): [Search, (change: Search, replace?: boolean) => void] => {
  const search = useAnySearch({ strict: false }) as Search
  const navigate = useNavigate()
  return [
    search,
    (change, replace = false) =>
      void navigate({ to: '.', search: { ...search, ...change } as never, replace, resetScroll: false }),
  ]
}

/** The names in the path of the address. */
export const useParams = (): Record<string, string> =>
  useAnyParams({ strict: false }) as Record<string, string>

/** The business whose data the page shows. */
export const useBusiness = (): string => useParams().business ?? 'default'
