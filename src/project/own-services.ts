import { describeError } from '../graph/load.ts'
import { toSettingsError } from '../state/errors.ts'
import type { Log } from '../state/ports/log.ts'
import type { OwnServices } from './project-config.ts'

/** `setup` of a product, with the settings it started with. */
export type OpenServices = (context: { log: Log }) => Promise<OwnServices> | OwnServices

/** Runs `setup` of a product. Throws `invalid_settings` where it fails, or names a service that Mason has. */
export const openOwnServices = async (
  setup: OpenServices | undefined,
  log: Log,
  builtIn: readonly string[],
): Promise<{ factories: Record<string, () => unknown>; close(): Promise<void> }> => {
  if (!setup) return { factories: {}, close: async () => {} }
  // JavaScript may return nothing
  const { services = {}, close }: Partial<OwnServices> = await Promise.resolve()
    .then(async () => (await setup({ log })) ?? {})
    .catch((error: unknown) => {
      throw toSettingsError(
        `setup of mason.config failed: ${describeError(error)}`,
        'correct what is named, or what it connects to',
        error,
      )
    })
  const names = Object.keys(services)
  const taken = names.find((name) => builtIn.includes(name))
  if (taken !== undefined) {
    await close?.()
    throw toSettingsError(
      `setup of mason.config returns the service "${taken}", which Mason has`,
      'give it another name',
    )
  }
  return {
    factories: Object.fromEntries(names.map((name) => [name, () => Reflect.get(services, name)])),
    close: async () => close?.(),
  }
}
