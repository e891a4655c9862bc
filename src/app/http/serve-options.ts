import type { Config } from '../../infra/config/config.ts'

/** Where the server listens, and how it authenticates. */
export type ServeOptions = Partial<Config['access']> & {
  /** `off` makes every caller the business `default`, and only localhost may call. */
  auth: Config['auth']
  /** Acts for any business; without it there is no such token. */
  adminToken?: string | null
  /** 0: any free one. */
  port?: number
  /** Absent: this machine alone. */
  host?: string
}
