import type { ServerDatabase } from '../config/config.ts'
import { paymentSettings } from '../config/payment-settings.ts'

/** The login of one kind of process, as its setting names it. */
export type ProcessLogin = { setting: keyof typeof loginRoles; url: string }

/** The only roles that each login is a member of: across businesses, and for one. */
export const loginRoles = {
  MASON_API_DATABASE_URL: { plain: 'mason_admin', business: 'mason_api' },
  MASON_WORKER_DATABASE_URL: { plain: 'mason_worker', business: 'mason_business' },
  [paymentSettings.url]: { plain: 'mason_payments', business: 'mason_payments' },
} as const

/** The logins of settings, for those that are set. */
export const listLogins = (
  settings: Pick<ServerDatabase, 'apiUrl' | 'workerUrl' | 'paymentUrl'>,
): ProcessLogin[] =>
  (
    [
      ['MASON_API_DATABASE_URL', settings.apiUrl],
      ['MASON_WORKER_DATABASE_URL', settings.workerUrl],
      [paymentSettings.url, settings.paymentUrl],
    ] as const
  ).flatMap(([setting, url]) => (url === undefined ? [] : [{ setting, url }]))

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
