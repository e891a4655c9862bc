import { z } from 'zod'
import type { Environment } from '../infra/config/config.ts'
import { type SettingName, settingNames } from '../infra/config/settings.ts'
import type { Log } from '../state/ports/log.ts'
import type { Services } from '../state/ports/services.ts'

/** Services of a product for its own tools and nodes, by the names that these list in `needs`. */
export type OwnServices = {
  services: Partial<Services>
  /** Called once, after the last run of this process has been handed back. */
  close?(): Promise<void> | void
}

/** Opens the services of a product: once in each process, before its first run. */
export type Setup = (context: {
  log: Log
  /** The settings, with those of `.env`, which are not in `process.env`. */
  environment: Environment
}) => Promise<OwnServices> | OwnServices

/**
 * What `mason.config.ts` exports as its default.
 *
 * @example
 * ```ts
 * import type { ProjectConfig } from 'mason-runtime'
 *
 * const config: ProjectConfig = { tools: ['tools', '@acme/mason-tools'], settings: { PORT: 9000 } }
 * console.log(config)
 * ```
 */
export type ProjectConfig = {
  /** Folders, relative to the config, and packages. Every `*.tool.ts` in them is a tool. */
  tools?: readonly string[]
  /** The same for `*.node.ts`. One folder can hold both and need be listed once. */
  nodes?: readonly string[]
  /** Folders of features, `./features/*` for each in one, and packages. */
  features?: readonly string[]
  setup?: Setup
  /** Defaults for settings; the environment and `.env` win. */
  settings?: Readonly<Partial<Record<SettingName, string | number>>>
}

/**
 * Gives `mason.config.ts` its types.
 *
 * @example
 * ```ts
 * import { defineConfig } from 'mason-runtime'
 *
 * export default defineConfig({
 *   tools: ['tools'],
 *   settings: { WORKER_CONCURRENCY: 4 },
 *   setup: ({ log }) => {
 *     log.info({}, 'the connection of our tools is open')
 *     return { services: {}, close: () => log.info({}, 'and closed') }
 *   },
 * })
 * ```
 */
export const defineConfig = (config: ProjectConfig): ProjectConfig => config

const names = z.array(z.string().min(1)).default([])

/** Checks a config, which may be JavaScript. */
export const projectConfigSchema = z.strictObject({
  tools: names,
  nodes: names,
  features: names,
  setup: z.custom<Setup>((value) => typeof value === 'function', { error: 'must be a function' }).optional(),
  settings: z.partialRecord(z.enum(settingNames), z.union([z.string(), z.number()])).default({}),
})
