import type { Dictionary } from './i18n/en.ts'

type Text = keyof Dictionary
type Group = { title: Text; isForAdmins: boolean; pages: readonly (readonly [page: string, text: Text])[] }

/** All pages, in groups. Those under admin/ are the lists of /admin/v1. */
export const navigation: readonly Group[] = [
  {
    title: 'work',
    isForAdmins: false,
    pages: [
      ['runs', 'runs'],
      ['inbox', 'inbox'],
      ['sessions', 'sessions'],
      ['files', 'files'],
      ['memory', 'memory'],
      ['graph', 'graph'],
    ],
  },
  {
    title: 'operate',
    isForAdmins: true,
    pages: [
      ['overview', 'overview'],
      ['usage', 'usage'],
      ['admin/workers', 'workers'],
      ['admin/effects', 'effects'],
      ['admin/rejected-jobs', 'rejected'],
      ['admin/schedules', 'schedules'],
      ['admin/webhooks', 'webhooks'],
      ['admin/audit', 'audit'],
    ],
  },
  {
    title: 'registry',
    isForAdmins: true,
    pages: [
      ['admin/vendors', 'vendors'],
      ['admin/categories', 'categories'],
      ['admin/routes', 'routes'],
      ['admin/grants', 'grants'],
      ['admin/response-formats', 'formats'],
      ['admin/scenarios', 'scenarios'],
    ],
  },
  {
    title: 'accounts',
    isForAdmins: true,
    pages: [
      ['admin/businesses', 'businesses'],
      ['admin/tokens', 'tokens'],
      ['admin/operators', 'operators'],
      ['admin/users', 'users'],
      ['admin/budgets', 'budgets'],
      ['admin/providers', 'providers'],
      ['admin/trust', 'trust'],
    ],
  },
]
