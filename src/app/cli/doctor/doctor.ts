import { z } from 'zod'
import * as core from '../../../features/core.ref.ts'
import { type FeatureSource, loadKind } from '../../../features/definition-files.ts'
import { loadFeatures, openFeatures } from '../../../features/load-features.ts'
import type { Config, Environment } from '../../../infra/config/config.ts'
import { databaseSettings, type ProcessRole } from '../../../infra/config/role-settings.ts'
import { isMasonError, toErrorMessage } from '../../../state/errors.ts'
import { featureSources } from '../../features.generated.ts'
import { loadFeatureSources, readFeatureMigrations } from '../../load-feature-sources.ts'
import { executorSettings, inspectConfig } from '../../read-config.ts'
import { withCommandName } from '../command-name.ts'
import { exitCodes } from '../errors.ts'
import { noServices } from '../features/list-features.ts'
import { openTerminal, type Terminal } from '../terminal.ts'
import { checkAccess } from './access.ts'
import { type DoctorCheck, type DoctorFinding, fail, type LoadedFeatures, pass } from './check.ts'
import { checkDatabase, hasDatabase, withUnmigratedDatabase } from './database.ts'
import { checkFiles } from './files.ts'
import { checkLearning } from './learning.ts'
import { checkDataFolder, checkDisk, checkNode } from './machine.ts'
import { checkModel } from './model.ts'
import { checkQueue, checkQueueOwner } from './queue.ts'
import { checkRegistry } from './registry.ts'
import { checkTools } from './tools.ts'

/** The options of `mason doctor`. */
export type DoctorFlags = { role: Extract<ProcessRole, 'serve' | 'api' | 'worker' | 'payments'> }

/** All checks; `needs` lists the settings that must be valid. */
const checks: readonly { name: string; check: DoctorCheck; needs: readonly string[] }[] = [
  { name: 'node', check: checkNode, needs: [] },
  {
    name: 'database',
    check: checkDatabase,
    needs: [...databaseSettings, executorSettings?.names.url ?? '', 'MASON_MIGRATE_URL'],
  },
  { name: 'queue', check: checkQueue, needs: ['REDIS_URL'] },
  { name: 'access', check: checkAccess, needs: ['MASON_ADMIN_TOKEN', 'MASON_MASTER_KEY'] },
  { name: 'model', check: checkModel, needs: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'] },
  { name: 'tools', check: checkTools, needs: ['MASON_TOOLS'] },
  { name: 'data', check: checkDataFolder, needs: databaseSettings },
  { name: 'disk', check: checkDisk, needs: ['DATA_DIR'] },
]

/** Checks that run only when the database is fine. */
const databaseChecks: typeof checks = [
  { name: 'queue', check: checkQueueOwner, needs: ['REDIS_URL', 'MASON_QUEUE_PREFIX'] },
  { name: 'registry', check: checkRegistry, needs: [] },
  { name: 'files', check: checkFiles, needs: [] },
  { name: 'learning', check: checkLearning, needs: [] },
]

/** The features, and what is to be said of those of the product. */
const checkFeatures = async (config: Config): Promise<LoadedFeatures & { findings: DoctorFinding[] }> => {
  const findings: DoctorFinding[] = []
  let features: LoadedFeatures = { sources: featureSources }
  try {
    const sources = await loadFeatureSources(config.featureFolders)
    const loaded = await loadFeatures(sources)
    const own = loaded.filter(({ source: { migrations } }) => migrations !== undefined)
    await checkHandles(sources, config)
    const known = Object.assign({}, ...loaded.map(({ definition }) => definition.settings?.shape))
    const unknown = Object.keys(config.featureVariables ?? {}).filter((name) => !(name in known))
    findings.push(
      ...own.map(({ definition: { id } }) => pass(`${id} of mason.config loads`)),
      ...unknown.map((name) => pass(`nothing reads the setting ${name}`, 'correct its name, or remove it')),
    )
    const migrations = await readFeatureMigrations(sources)
    features = { sources, migrations }
    // not for a server, which may have extensions that an embedded database lacks
    const isNew = config.database.kind === 'memory' || !hasDatabase(config)
    if (isNew && migrations.some((one) => one.own))
      await withUnmigratedDatabase({ ...config, database: { kind: 'memory' } }, async () => {}, migrations)
  } catch (error) {
    const remedy = (isMasonError(error) && error.remedy) || 'correct what it names'
    findings.push(fail(toErrorMessage(error), remedy))
  }
  return { ...features, findings }
}

/** Throws for handles and settings that would end a start: everything is opened, and no service is started. */
const checkHandles = async (sources: readonly FeatureSource[], config: Config): Promise<void> => {
  const ofBuild = (await loadKind(featureSources, 'service')).map(({ definition }) => definition.provides.id)
  const provided = Object.values(core).filter(({ id }) => !ofBuild.includes(id))
  const values = provided.map((ref) => [ref, ref === core.configRef ? config : noServices] as const)
  const features = await openFeatures(sources, values, undefined, () => noServices)
  await features.loadRunServices([])
  await features.loadLoops()
  await features.loadCounters()
  await features.loadRetention()
  await loadKind(sources, 'doctor')
  await features.addRoutes(noServices as never, noServices as never)
}

const lines = z.array(z.object({ ok: z.boolean(), text: z.string(), remedy: z.string().optional() }))
/** Those of features, which also run when the database is fine. */
const loadFeatureChecks = async ({ sources }: LoadedFeatures): Promise<typeof checks> =>
  (await loadKind(sources, 'doctor')).map(({ file, definition: { name, settings, check } }) => ({
    name,
    needs: settings,
    async check(config) {
      const { data } = lines.safeParse(
        await check(config, { readDatabase: (read) => withUnmigratedDatabase(config, read), pass, fail }),
      )
      return (
        data ?? [fail(`${file} returned no list of lines`, 'return what pass() and fail() make: [pass(…)]')]
      )
    },
  }))

/** Of these, what an executor of payments does and has a right to look at. */
const ofExecutor: readonly DoctorCheck[] = [checkNode, checkDatabase, checkQueue, checkDataFolder, checkDisk]

const doctorTimeoutMs = 10_000

/** `mason doctor`: checks everything at once, without a call that costs money. Exit code 0 when all is well, else 1. */
export const runDoctor = async ({ role }: DoctorFlags, env: Environment): Promise<number> => {
  const terminal = openTerminal(env)
  const { config, errors } = inspectConfig(env, { role })
  const invalidSettings = new Set<string>(errors.map(({ setting }) => setting))
  const settings: DoctorFinding[] =
    errors.length === 0
      ? [pass(`complete for "mason ${role === 'worker' || role === 'payments' ? role : 'serve'}"`)]
      : errors.map(({ setting, problem, remedy }) => fail(`${setting} ${problem}`, remedy))
  const { findings, ...features } = await checkFeatures(config)
  // the time that files of a product take to load is not that of the checks
  const signal = AbortSignal.timeout(doctorTimeoutMs)
  if (role !== 'payments' && config.database.kind === 'postgres' && env[executorSettings?.names.key ?? ''])
    settings.push(
      pass(
        `${executorSettings?.names.key} is set for a process that is not the executor of payments`,
        'remove it here: who can read it and the database can read the secrets of payment providers',
      ),
    )
  const canRun = ({ needs }: (typeof checks)[number]) => !needs.some((one) => invalidSettings.has(one))
  const isOfRole = ({ check }: (typeof checks)[number]) => role !== 'payments' || ofExecutor.includes(check)
  const run = async ({ name, check }: (typeof checks)[number]) => ({
    name,
    findings: await runCheck(() => check(config, signal, features)),
  })
  const all = [
    { name: 'settings', findings: settings },
    { name: 'features', findings },
    ...(await Promise.all(checks.filter(isOfRole).filter(canRun).map(run))),
  ]
  // last, because an embedded database can be opened once at a time
  if (all.find(({ name }) => name === 'database')?.findings.every(({ ok }) => ok))
    for (const one of [...(await loadFeatureChecks(features)), ...databaseChecks.filter(isOfRole)].filter(
      canRun,
    ))
      all.push(await run(one))
  for (const { name, findings } of all)
    for (const finding of findings) terminal.out.write(formatFinding(name, finding, terminal))
  const problemCount = all.flatMap(({ findings }) => findings).filter(({ ok }) => !ok).length
  const problems = problemCount === 1 ? '1 problem' : `${problemCount} problems`
  terminal.out.write(`\n${problemCount === 0 ? 'all is well' : problems}\n`)
  return problemCount === 0 ? exitCodes.done : exitCodes.failed
}

const runCheck = async (check: () => Promise<DoctorFinding[]>): Promise<DoctorFinding[]> => {
  try {
    return await check()
  } catch (error) {
    const text = `the check failed: ${toErrorMessage(error)}`
    return [fail(text, 'set LOG_LEVEL=debug and run the failing command for details')]
  }
}

const formatFinding = (name: string, { ok, text, remedy }: DoctorFinding, { colors }: Terminal): string => {
  const okMark = remedy === undefined ? colors.green('ok   ') : colors.yellow('warn ')
  const line = `${ok ? okMark : colors.red('ERROR')}  ${name.padEnd(8)}  ${text}\n`
  return remedy === undefined ? line : `${line}                 -> ${withCommandName(remedy)}\n`
}
