import type { NewToken } from '../../../accounts/account-schemas.ts'
import type { NewOperator } from '../../../accounts/audit-schemas.ts'
import type { Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { toSettingsError } from '../../../state/errors.ts'
import { exitCodes } from '../errors.ts'
import { type AdminTarget, withAdminClient } from './admin-client.ts'

/** The options of `mason tokens create`. */
export type CreateTokenFlags = AdminTarget & {
  business: string
  name?: string
  role?: string[]
  /** The name of a person: an admin token. */
  operator?: string
}

/**
 * `mason tokens create`: prints the token alone on stdout, so that a script can keep it, and what it may do on stderr. The
 * token is not stored and cannot be shown again. Returns the exit code.
 */
export const createToken = (flags: CreateTokenFlags, env: Environment, scrubber: Scrubber): Promise<number> =>
  withAdminClient(flags, env, scrubber, async ({ call }) => {
    const { business, name: label, role: roles, operator } = flags
    if ((label === undefined) === (operator === undefined))
      throw toSettingsError(
        'a token needs one of --name and --operator',
        'give --name for a token of a business, or --operator for an admin token of a person',
      )
    if (operator !== undefined) {
      const { id, name, token } = (await call('POST', '/admin/v1/operators', {
        name: operator,
      })) as NewOperator
      process.stdout.write(`${token}\n`)
      process.stderr.write(`${id} is the admin token of ${name}; keep it, it is shown only this once\n`)
      return exitCodes.done
    }
    const body = { business_id: business, label, ...(roles && { roles }) }
    const created = (await call('POST', '/admin/v1/tokens', body)) as NewToken
    process.stdout.write(`${created.token}\n`)
    process.stderr.write(
      `${created.id} may ${created.roles.join(' and ')} for ${created.business_id}; keep the token, it is shown only this once\n`,
    )
    return exitCodes.done
  })
