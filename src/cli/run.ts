import { type Config, type Environment, readConfig } from '../infra/config.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import { scrubSettings } from '../infra/secrets/setting-secrets.ts'
import { idPattern, type RunRequest } from '../state/run-request.ts'
import { exitCodes, UsageError } from './failure.ts'
import { readFiles } from './files.ts'
import { follow } from './follow.ts'
import type { Gateway } from './gateway.ts'
import { onInterrupt } from './interrupts.ts'
import { createJsonRenderer, createRenderer, type Renderer } from './render.ts'
import { openTerminal, type Terminal } from './terminal.ts'

export type RunFlags = {
  session?: string
  user?: string
  file?: string[]
  url?: string
  token?: string
  json?: boolean
}

/** `mason run`: submits one run, to a server or to a runtime in this process, and follows it. Gives the exit code. */
export const run = async (
  prompt: string,
  flags: RunFlags,
  env: Environment,
  scrubber: Scrubber,
): Promise<number> => {
  const config = configOf(flags, env)
  scrubSettings(config, scrubber)
  const request = await requestOf(prompt, flags)
  const terminal = openTerminal(env)
  const renderer = flags.json ? createJsonRenderer(process.stdout, process.stderr) : createRenderer(terminal)
  const interrupt = onInterrupt()
  let gateway: Gateway | null = null
  try {
    if (!flags.json && config.client.url === null && config.database.kind === 'embedded')
      renderer.note('starting the embedded database, which takes a few seconds …')
    gateway = await openGateway(config, renderer, scrubber)
    if (interrupt.signal.aborted) return exitCodes.cancelled
    const followed = await gateway.submit(request)
    if (!flags.json) introduce(followed.run, gateway, terminal)
    const canAsk = terminal.canAsk && !flags.json
    const shown = { renderer, terminal: { ...terminal, canAsk }, gateway }
    const code = await follow(followed, shown, interrupt.signal)
    if (!flags.json && code === exitCodes.done)
      terminal.out.write(
        `${terminal.colors.dim(`go on: ${gateway.howToGoOn(followed.run.session_id, request.user_id)}`)}\n`,
      )
    return code
  } finally {
    renderer.close()
    await gateway?.close()
    interrupt.stop()
  }
}

/** Flags are settings given by hand. Logs would spoil the picture, so only warnings come through by default. */
const configOf = (flags: RunFlags, env: Environment): Config => {
  const given = {
    ...env,
    ...(flags.url !== undefined && { MASON_URL: flags.url }),
    ...(flags.token !== undefined && { MASON_TOKEN: flags.token }),
    LOG_LEVEL: env.LOG_LEVEL || 'warn',
  }
  return readConfig(given, { role: given.MASON_URL ? 'client' : 'run' })
}

const openGateway = async (config: Config, renderer: Renderer, scrubber: Scrubber): Promise<Gateway> => {
  const note = (line: string): void => renderer.note(line)
  const { url, token } = config.client
  if (url !== null) return (await import('./http-gateway.ts')).openHttpGateway({ url, token }, note)
  const [{ openLocalGateway }, { createNotes }] = await Promise.all([
    import('./local-gateway.ts'),
    import('./log.ts'),
  ])
  return openLocalGateway(config, createNotes(config.logLevel, note, scrubber), scrubber)
}

const requestOf = async (prompt: string, flags: RunFlags): Promise<RunRequest> => {
  if (prompt.trim() === '') throw new UsageError('the prompt is empty', 'mason run "What should be done?"')
  for (const [flag, id] of [
    ['--session', flags.session],
    ['--user', flags.user],
  ] as const)
    if (id !== undefined && !idPattern.test(id))
      throw new UsageError(
        `${flag} ${JSON.stringify(id)} is no id`,
        'use letters, digits and . _ : @ -, starting with a letter, a digit, - or one _',
      )
  const files = await readFiles(flags.file ?? [])
  return {
    prompt,
    user_id: flags.user ?? 'local',
    ...(flags.session !== undefined && { session_id: flags.session }),
    ...(files.length > 0 && { files }),
  }
}

/** Shown by the demo too. */
export const introduce = (
  run: { id: string; session_id: string; turn: number },
  gateway: Pick<Gateway, 'offline'>,
  { out, colors }: Terminal,
): void => {
  out.write(`${colors.dim(`run ${run.id} · session ${run.session_id} · turn ${run.turn}`)}\n`)
  if (gateway.offline === true)
    out.write(
      `${colors.dim('The built-in offline model answers: rules, no AI. Set OPENAI_API_KEY or OPENAI_BASE_URL for a real model.')}\n`,
    )
}
