import type { NewToken } from '../../accounts/account-schemas.ts'
import type { Environment } from '../../infra/config/config.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import { exitCodes } from '../errors.ts'
import { type AdminTarget, withAdminClient } from './admin-client.ts'

/** The options of `mason tokens create`. */
export type CreateTokenFlags = AdminTarget & { business: string; name: string; role?: string[] }

/**
 * `mason tokens create`: prints the token alone on stdout, so that a script can keep it, and what it may do on stderr. The
 * token is not stored and cannot be shown again. Returns the exit code.
 */
export const createToken = (flags: CreateTokenFlags, env: Environment, scrubber: Scrubber): Promise<number> =>
  withAdminClient(flags, env, scrubber, async ({ call }) => {
    const { business, name: label, role: roles } = flags
    const body = { business_id: business, label, ...(roles && { roles }) }
    const created = (await call('POST', '/admin/v1/tokens', body)) as NewToken
    process.stdout.write(`${created.token}\n`)
    process.stderr.write(
      `${created.id} may ${created.roles.join(' and ')} for ${created.business_id}; keep the token, it is shown only this once\n`,
    )
    return exitCodes.done
  })
