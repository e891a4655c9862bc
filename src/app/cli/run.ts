import type { Config, Environment } from '../../infra/config/config.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import type { Project } from '../../project/load-project.ts'
import { idPattern, type RunRequest } from '../../state/run-request.ts'
import { addSettingSecrets } from '../setting-secrets.ts'
import { exitCodes, UsageError } from './errors.ts'
import { followRun } from './follow-run.ts'
import { findTarget, type RunGateway, type RunHandle, readTargetConfig } from './gateway.ts'
import { listenForInterrupt } from './interrupts.ts'
import { createJsonRenderer, createRenderer, type Renderer } from './renderer.ts'
import { readRequestFiles } from './request-files.ts'
import { openTerminal, type Terminal } from './terminal.ts'

/** The options of `mason run`. */
export type RunFlags = {
  session?: string
  user?: string
  file?: string[]
  url?: string
  token?: string
  json?: boolean
}

/** `mason run`: submits one run to a server or to a runtime in this process and follows it. Returns the exit code. */
export const submitAndFollowRun = async (
  prompt: string,
  flags: RunFlags,
  env: Environment,
  scrubber: Scrubber,
  setup: Project['setup'],
): Promise<number> => {
  const config = readTargetConfig(flags, env)
  addSettingSecrets(config, scrubber)
  const request = await buildRunRequest(prompt, flags)
  const terminal = openTerminal(env)
  const renderer = flags.json ? createJsonRenderer(process.stdout, process.stderr) : createRenderer(terminal)
  let interrupt: ReturnType<typeof listenForInterrupt> | null = null
  let gateway: RunGateway | null = null
  try {
    const client = await findTarget(config)
    if (client.token) scrubber.add(client.token)
    if (!flags.json && client.url === null && config.database.kind === 'embedded')
      renderer.note('starting the embedded database (takes a few seconds) …')
    gateway = await openGateway({ ...config, client }, renderer, scrubber, setup)
    // until here a signal ends the process: there is no run to cancel
    interrupt = listenForInterrupt()
    const handle = await gateway.submit(request)
    if (!flags.json) printRunHeader(handle.run, gateway, terminal)
    const canAsk = terminal.canAsk && !flags.json
    const display = { renderer, terminal: { ...terminal, canAsk }, gateway }
    const code = await followRun(handle, display, interrupt.signal)
    if (!flags.json && code === exitCodes.done)
      terminal.out.write(
        `${terminal.colors.dim(`to continue: ${gateway.formatContinueCommand(handle.run.session_id, request.user_id)}`)}\n`,
      )
    return code
  } finally {
    renderer.close()
    await gateway?.close()
    interrupt?.stop()
  }
}

const openGateway = async (
  config: Config,
  renderer: Renderer,
  scrubber: Scrubber,
  setup: Project['setup'],
): Promise<RunGateway> => {
  const note = (line: string): void => renderer.note(line)
  const { url, token } = config.client
  if (url !== null) return (await import('./http-gateway.ts')).openHttpGateway({ url, token }, note)
  const [{ openLocalGateway }, { createNoteLog }] = await Promise.all([
    import('./local-gateway.ts'),
    import('./log.ts'),
  ])
  return openLocalGateway(config, createNoteLog(config.logLevel, note, scrubber), scrubber, {
    ...(setup && { setup }),
  })
}

const buildRunRequest = async (prompt: string, flags: RunFlags): Promise<RunRequest> => {
  if (prompt.trim() === '') throw new UsageError('the prompt is empty', 'mason run "What should be done?"')
  for (const [flag, id] of [
    ['--session', flags.session],
    ['--user', flags.user],
  ] as const)
    if (id !== undefined && !idPattern.test(id))
      throw new UsageError(
        `${flag} ${JSON.stringify(id)} is not a valid id`,
        'use letters, digits and . _ : @ -, starting with a letter, a digit, - or one _',
      )
  const files = await readRequestFiles(flags.file ?? [])
  return {
    prompt,
    user_id: flags.user ?? 'local',
    ...(flags.session !== undefined && { session_id: flags.session }),
    ...(files.length > 0 && { files }),
  }
}

/** The first lines of a followed run; the demo prints them too. */
export const printRunHeader = (
  run: RunHandle['run'],
  gateway: Pick<RunGateway, 'offline'>,
  { out, colors }: Terminal,
): void => {
  out.write(`${colors.dim(`run ${run.id} · session ${run.session_id} · turn ${run.turn}`)}\n`)
  if (gateway.offline === true)
    out.write(
      `${colors.dim('The built-in offline model answers (rules, no AI). Set OPENAI_API_KEY or OPENAI_BASE_URL for a real model.')}\n`,
    )
}
