import { type Config, type Environment, inspectSettings } from '../infra/config/config.ts'
import type { ProcessRole } from '../infra/config/role-settings.ts'
import { MasonError } from '../state/errors.ts'
import { features } from './features.generated.ts'

/** The settings of the executor; absent: no feature of this build has one. */
export const executorSettings = features.find(({ executor }) => executor)?.executor

/** The errors, and the configuration without the settings that have one; for the doctor. */
export const inspectConfig = (env: Environment, { role }: { role: ProcessRole }) =>
  inspectSettings(env, role, executorSettings)

/**
 * All settings that a process of this role needs. Throws `invalid_settings` with every error at once in
 * `detail.errors`. An empty setting counts as absent, so that compose files can pass optional settings on.
 *
 * @example
 * ```ts
 * import { readConfig, readEnvironment } from 'mason-runtime'
 *
 * const config = readConfig(readEnvironment(), { role: 'serve' })
 * console.log(config.http.port)
 * ```
 */
export const readConfig = (env: Environment, options: { role: ProcessRole }): Config => {
  const { config, errors } = inspectConfig(env, options)
  if (errors.length === 0) return config
  throw new MasonError(
    'invalid_settings',
    `${errors.length === 1 ? 'a setting is' : `${errors.length} settings are`} wrong: ${errors.map(({ setting, problem }) => `${setting} ${problem}`).join('; ')}`,
    {
      remedy: errors.map(({ setting, remedy }) => `${setting}: ${remedy}`).join('; '),
      detail: { errors },
    },
  )
}
