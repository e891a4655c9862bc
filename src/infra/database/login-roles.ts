import type { ServerDatabase } from '../config/config.ts'

/** The login of one kind of process, as its setting names it. */
export type ProcessLogin = { setting: string; url: string; roles: { plain: string; business: string } }

/** The only roles that each login is a member of: across businesses, and for one. */
export const loginRoles = {
  api: { plain: 'mason_admin', business: 'mason_api' },
  worker: { plain: 'mason_worker', business: 'mason_business' },
  payments: { plain: 'mason_payments', business: 'mason_payments' },
} as const

/** The logins of settings, for those that are set. */
export const listLogins = (
  settings: Pick<ServerDatabase, 'apiUrl' | 'workerUrl' | 'paymentUrl' | 'paymentSetting'>,
): ProcessLogin[] =>
  (
    [
      ['MASON_API_DATABASE_URL', settings.apiUrl, loginRoles.api],
      ['MASON_WORKER_DATABASE_URL', settings.workerUrl, loginRoles.worker],
      [settings.paymentSetting ?? 'the executor', settings.paymentUrl, loginRoles.payments],
    ] as const
  ).flatMap(([setting, url, roles]) => (url === undefined ? [] : [{ setting, url, roles }]))

/** Whether a part of the process has no login of its own. A process of one part has that part's as its `url`. */
export const sharesLogin = ({ url, apiUrl, workerUrl, paymentUrl }: ServerDatabase): boolean =>
  (apiUrl === undefined || workerUrl === undefined) && ![apiUrl, workerUrl, paymentUrl].includes(url)

/** What is wrong with a superuser's login, and what to do. */
export const superuserWarning = {
  problem:
    'the database login is a superuser: row-level security does not bind it, so a mistake in one statement shows the rows of all businesses',
  remedy:
    'set MASON_API_DATABASE_URL and MASON_WORKER_DATABASE_URL to logins of their own, keep the superuser for MASON_MIGRATE_URL, and run `mason migrate`',
}
