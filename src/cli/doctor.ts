import type { Role } from '../infra/config/cross-checks.ts'
import { type Config, type Environment, inspectConfig } from '../infra/config.ts'
import { checkDatabase } from './doctor/database.ts'
import { checkFiles } from './doctor/files.ts'
import { checkDataFolder, checkDisk, checkNode } from './doctor/machine.ts'
import { checkModel } from './doctor/model.ts'
import { checkQueue } from './doctor/queue.ts'
import { checkRegistry } from './doctor/registry.ts'
import { exitCodes } from './failure.ts'
import { openTerminal, type Terminal } from './terminal.ts'

export type DoctorFlags = { role: Extract<Role, 'serve' | 'api' | 'worker'> }

/** What was found out about one thing Mason depends on; `remedy` says how to mend it, or what would be better than what works. */
export type Finding =
  | { ok: true; text: string; remedy?: string }
  | { ok: false; text: string; remedy: string }

export type Check = (config: Config, signal: AbortSignal) => Promise<Finding[]>

/** What is looked at, and the settings without which there is nothing to look at. */
const checks: readonly { name: string; check: Check; needs: readonly string[] }[] = [
  { name: 'node', check: checkNode, needs: [] },
  { name: 'database', check: checkDatabase, needs: ['DATABASE_URL', 'DATA_DIR'] },
  { name: 'queue', check: checkQueue, needs: ['REDIS_URL'] },
  { name: 'model', check: checkModel, needs: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'] },
  { name: 'data', check: checkDataFolder, needs: ['DATABASE_URL', 'DATA_DIR'] },
  { name: 'disk', check: checkDisk, needs: ['DATA_DIR'] },
]

/** Looked at when the database is well. */
const ofDatabase: readonly { name: string; check: Check }[] = [
  { name: 'registry', check: checkRegistry },
  { name: 'files', check: checkFiles },
]

const patienceMs = 10_000

/** `mason doctor`: looks at everything at once, without any call that costs money. Exit code 0 when all is well, else 1. */
export const doctor = async ({ role }: DoctorFlags, env: Environment): Promise<number> => {
  const terminal = openTerminal(env)
  const { config, faults } = inspectConfig(env, { role })
  const wrong = new Set<string>(faults.map(({ setting }) => setting))
  const settings: Finding[] =
    faults.length === 0
      ? [{ ok: true, text: `complete for "mason ${role === 'worker' ? 'worker' : 'serve'}"` }]
      : faults.map(({ setting, problem, remedy }) => ({ ok: false, text: `${setting} ${problem}`, remedy }))
  const signal = AbortSignal.timeout(patienceMs)
  const looked = checks
    .filter(({ needs }) => !needs.some((setting) => wrong.has(setting)))
    .map(async ({ name, check }) => ({ name, findings: await guarded(check, config, signal) }))
  const all = [{ name: 'settings', findings: settings }, ...(await Promise.all(looked))]
  // only now: an embedded database lets one in at a time
  const database = all.find(({ name }) => name === 'database')
  if (database?.findings.every(({ ok }) => ok))
    for (const { name, check } of ofDatabase)
      all.push({ name, findings: await guarded(check, config, signal) })
  for (const { name, findings } of all)
    for (const finding of findings) terminal.out.write(findingLine(name, finding, terminal))
  const bad = all.flatMap(({ findings }) => findings).filter(({ ok }) => !ok).length
  terminal.out.write(bad === 0 ? '\nall is well\n' : `\n${bad === 1 ? 'one fault' : `${bad} faults`}\n`)
  return bad === 0 ? exitCodes.done : exitCodes.failed
}

const guarded = async (check: Check, config: Config, signal: AbortSignal): Promise<Finding[]> => {
  try {
    return await check(config, signal)
  } catch (error) {
    const text = `cannot be checked: ${error instanceof Error ? error.message : String(error)}`
    return [{ ok: false, text, remedy: 'set LOG_LEVEL=debug and try the command that fails for more' }]
  }
}

const findingLine = (name: string, finding: Finding, { colors }: Terminal): string => {
  const well = finding.remedy === undefined ? colors.green('ok   ') : colors.yellow('warn ')
  const mark = finding.ok ? well : colors.red('FAULT')
  const line = `${mark}  ${name.padEnd(8)}  ${finding.text}\n`
  return finding.remedy === undefined ? line : `${line}                 -> ${finding.remedy}\n`
}
