import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../src/app/cli/command-runner.ts'
import { exitCodes } from '../src/app/cli/errors.ts'
import { followRun } from '../src/app/cli/follow-run.ts'
import type { RunHandle } from '../src/app/cli/gateway.ts'
import { listenForInterrupt } from '../src/app/cli/interrupts.ts'
import { type LocalGateway, openLocalGateway } from '../src/app/cli/local-gateway.ts'
import { createNoteLog } from '../src/app/cli/log.ts'
import { createRenderer } from '../src/app/cli/renderer.ts'
import { readRequestFiles } from '../src/app/cli/request-files.ts'
import { printRunHeader } from '../src/app/cli/run.ts'
import { openTerminal } from '../src/app/cli/terminal.ts'
import { readConfig } from '../src/app/read-config.ts'
import { readTrajectory } from '../src/features/trajectories/read-trajectory.ts'
import type { Environment } from '../src/infra/config/config.ts'
import { toPackagePath } from '../src/infra/lib/package-path.ts'
import { createScrubber } from '../src/infra/secrets/scrubber.ts'
import type { Models } from '../src/state/ports/models.ts'

/**
 * `npm run demo`: one real run over a real file, through queue, graph and database, all in this process. With `-- --xml` its model
 * writes the language of the dialogue, and the run is shown in it.
 */

const question =
  'Which region has the highest revenue from completed orders, and how many orders were returned?'

/** A folder of its own, so that it runs beside anything else. Models are those of the settings; servers are not used. */
const configIn = (dataDir: string, env: Environment) =>
  readConfig(
    { ...env, DATABASE_URL: '', REDIS_URL: '', DATA_DIR: dataDir, LOG_LEVEL: env.LOG_LEVEL || 'warn' },
    { role: 'run' },
  )

const demo = async (env: Environment, isWritten: boolean): Promise<number> => {
  const terminal = openTerminal(env)
  const { out, colors } = terminal
  const interrupt = listenForInterrupt()
  const file = toPackagePath('examples', 'data', 'orders.csv')
  const dataDir = await mkdtemp(join(tmpdir(), 'mason-demo-'))
  try {
    const renderer = createRenderer(terminal)
    const transcript = createTranscript(out)
    const config = configIn(dataDir, isWritten ? { ...env, MASON_OFFLINE_DIALECT: 'xml' } : env)
    out.write(`${colors.bold('Mason demo')}: database, queue and worker in one process, nothing to install\n`)
    out.write(`${colors.dim('starting the embedded database (takes a few seconds) …')}\n\n`)
    const gateway = await openLocalGateway(
      config,
      createNoteLog(config.logLevel, (line) => renderer.note(line)),
      createScrubber(),
      isWritten ? { wrap: { models: transcript.wrap } } : {},
    )
    try {
      if (interrupt.signal.aborted) return exitCodes.cancelled
      out.write(
        `${colors.bold('question')}  ${question}\n${colors.bold('file')}      examples/data/orders.csv\n`,
      )
      const followed = await gateway.submit({
        prompt: question,
        user_id: 'demo',
        files: await readRequestFiles([file]),
      })
      printRunHeader(followed.run, gateway, terminal)
      const code = isWritten
        ? await followWriting(followed, transcript, gateway, { out, signal: interrupt.signal })
        : await followRun(followed, { renderer, terminal, gateway }, interrupt.signal)
      if (code === exitCodes.done) out.write(`${whatNext(gateway.offline === true)}\n`)
      return code
    } finally {
      await gateway.close()
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
    interrupt.stop()
  }
}

/** Prints the run in the language of the dialogue: what its model writes, word by word, and what is put back. */
const createTranscript = (out: NodeJS.WritableStream) => {
  let printed = ''
  /** White space at the end of a reply is no part of it. */
  let held = ''
  let read = async (): Promise<string> => ''
  const print = (text: string): void => {
    out.write(text)
    printed += text
  }
  /** Prints what the trajectory has beyond what was written: what was put back, and what of a reply came otherwise. */
  const catchUp = async (): Promise<void> => {
    const text = await read()
    held = ''
    if (printed.startsWith(text)) return
    let same = 0
    while (same < printed.length && printed[same] === text[same]) same++
    out.write(`${same < printed.length ? '\n' : ''}${text.slice(same)}`)
    printed = text
  }
  return {
    catchUp,
    follow(trajectory: () => Promise<string>): void {
      read = trajectory
    },
    wrap: (models: Models): Models => ({
      ...models,
      async call(request, signal) {
        if (request.role !== 'planner') return models.call(request, signal)
        await catchUp()
        if (printed !== '') print('\n')
        const onText = (text: string, attempt: number): void => {
          held += text
          print(held.trimEnd())
          held = held.slice(held.trimEnd().length)
          request.onText?.(text, attempt)
        }
        return models.call({ ...request, onText }, signal)
      },
    }),
  }
}

/** Shows the run in the language of the dialogue while it goes on, then its whole trajectory. */
const followWriting = async (
  { run, events }: RunHandle,
  transcript: ReturnType<typeof createTranscript>,
  gateway: LocalGateway,
  { out, signal }: { out: NodeJS.WritableStream; signal: AbortSignal },
): Promise<number> => {
  const read = () => readTrajectory(gateway.runs, gateway.graph, run.id)
  transcript.follow(async () => (await read())?.text ?? '')
  for await (const event of events(signal)) {
    if (event.event !== 'done') continue
    await transcript.catchUp()
    const { text = '', origin = '' } = (await read()) ?? {}
    out.write(`\n\ntrajectory (${origin}), as mason trajectory prints it:\n\n${text}\n\n`)
    return event.data.status === 'completed' ? exitCodes.done : exitCodes.failed
  }
  return exitCodes.failed
}

const whatNext = (offline: boolean): string => {
  const steps = [
    ['a question of your own', 'npx mason run "How many rows are there?" --file examples/data/orders.csv'],
    ['the language as text', 'npm run demo -- --xml'],
    ['API and console', 'npm start                 then open http://127.0.0.1:8080/docs or /console'],
    ['two workers, one killed', 'npm run demo:served       needs DATABASE_URL and REDIS_URL'],
    ...(offline ? [['a real model', 'OPENAI_API_KEY=… npm run demo']] : []),
  ]
  return ['What to try next', ...steps.map(([what, how]) => `  ${what?.padEnd(24)} ${how}`)].join('\n')
}

await runCommand((env) => demo(env(), process.argv.includes('--xml')))
