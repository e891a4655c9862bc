import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../src/cli/command-runner.ts'
import { exitCodes } from '../src/cli/errors.ts'
import { followRun } from '../src/cli/follow-run.ts'
import { listenForInterrupt } from '../src/cli/interrupts.ts'
import { openLocalGateway } from '../src/cli/local-gateway.ts'
import { createNoteLog } from '../src/cli/log.ts'
import { createRenderer } from '../src/cli/renderer.ts'
import { readRequestFiles } from '../src/cli/request-files.ts'
import { printRunHeader } from '../src/cli/run.ts'
import { openTerminal } from '../src/cli/terminal.ts'
import { type Environment, readConfig } from '../src/infra/config/config.ts'
import { toPackagePath } from '../src/infra/lib/package-path.ts'

/** `npm run demo`: one real run over a real file, through queue, graph and database, all in this process. */

const question =
  'Which region has the highest revenue from completed orders, and how many orders were returned?'

/** A folder of its own, so that it runs beside anything else. Models are those of the settings; servers are not used. */
const configIn = (dataDir: string, env: Environment) =>
  readConfig(
    { ...env, DATABASE_URL: '', REDIS_URL: '', DATA_DIR: dataDir, LOG_LEVEL: env.LOG_LEVEL || 'warn' },
    { role: 'run' },
  )

const demo = async (env: Environment): Promise<number> => {
  const terminal = openTerminal(env)
  const { out, colors } = terminal
  const interrupt = listenForInterrupt()
  const file = toPackagePath('examples', 'data', 'orders.csv')
  const dataDir = await mkdtemp(join(tmpdir(), 'mason-demo-'))
  try {
    const renderer = createRenderer(terminal)
    const config = configIn(dataDir, env)
    out.write(`${colors.bold('Mason demo')}: database, queue and worker in one process, nothing to install\n`)
    out.write(`${colors.dim('starting the embedded database (takes a few seconds) …')}\n\n`)
    const gateway = await openLocalGateway(
      config,
      createNoteLog(config.logLevel, (line) => renderer.note(line)),
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
      const code = await followRun(followed, { renderer, terminal, gateway }, interrupt.signal)
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

const whatNext = (offline: boolean): string => {
  const steps = [
    ['a question of your own', 'npx mason run "How many rows are there?" --file examples/data/orders.csv'],
    ['the HTTP API', 'npm start                 then open http://127.0.0.1:8080/docs'],
    ['two workers, one killed', 'npm run demo:served       needs DATABASE_URL and REDIS_URL'],
    ...(offline ? [['a real model', 'OPENAI_API_KEY=… npm run demo']] : []),
  ]
  return ['What to try next', ...steps.map(([what, how]) => `  ${what?.padEnd(24)} ${how}`)].join('\n')
}

await runCommand((env) => demo(env()))
