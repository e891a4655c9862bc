import { parseArgs } from 'node:util'
import { runCommand } from '../src/app/cli/command-runner.ts'
import type { AgentLine } from './ap2/tasks.ts'
import { type AgentName, agentNames, startAgents } from './buy-demo/agents.ts'
import { introduceAgents } from './buy-demo/introductions.ts'
import { answerQuestion, awayPrompt, prompt, startShopper, toLimitsPrompt } from './buy-demo/shopper.ts'
import { type Mason, openStage, publicUrl, type Stage } from './purchase/stage.ts'

/**
 * `npm run demo:buy`: Mason buys a coffee maker from agents over A2A: a merchant, a credentials provider and a card processor. Without
 * a terminal the demo approves and answers itself; without OPENAI_API_KEY a scripted model plays the shopper. With `--absent` the user
 * then signs limits, within which a schedule buys.
 */
const { values } = parseArgs({
  options: {
    ap2: { type: 'string' },
    absent: { type: 'boolean', default: false },
  },
})
// open mandates are of AP2 0.2
const ap2 = values.ap2 ?? (values.absent ? '0.2' : '0.1')

const senders: Record<string, string> = {
  mason: 'mason',
  'Generic Merchant': 'merchant',
  'Card Processor': 'processor',
}

/** Who said what to whom. Texts of others could steer the terminal. */
const toLine = (agent: AgentName, line: AgentLine): string => {
  const [from, to, what] =
    'from' in line
      ? [senders[line.from] ?? line.from, agent, line.text]
      : [agent, senders[line.to] ?? line.to, `${line.state}${line.text ? `: ${line.text}` : ''}`]
  const keys = [...new Set(line.keys)].join(', ')
  return `  ${`${from} > ${to}`.padEnd(28)} ${what}${keys ? `  {${keys}}` : ''}`.replace(/\p{Cc}+/gu, ' ')
}

const toModel = async (stage: Stage): Promise<Record<string, string>> => {
  const { OPENAI_API_KEY, OPENAI_BASE_URL = '', OPENAI_MODEL = '' } = process.env
  if (OPENAI_API_KEY) return { OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL }
  const model = await startShopper()
  stage.close(model.close)
  return { OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'none', OPENAI_MODEL: 'scripted' }
}

const demo = async (stage: Stage): Promise<boolean> => {
  const { folder, terminal } = stage
  const { out, colors } = terminal
  out.write(`${colors.bold('Mason buys over A2A')}: four processes, AP2 ${ap2}\n`)
  const mason = await stage.openMason(await toModel(stage))
  const agents = await startAgents({
    ...{ folder, audience: publicUrl, trust: mason.keys, flags: process.execArgv },
    change: { merchant: { unsigned_offers: ap2 === '0.1' } },
    onLine: (agent, line) => void out.write(colors.dim(`${toLine(agent, line)}\n`)),
  })
  stage.close(agents.close)
  await introduceAgents(mason, agents)
  for (const agent of agentNames) out.write(`  ${agent.padEnd(10)} ${agents[agent].url}\n`)
  const isBought = await stage.buy(mason, prompt, answerQuestion)
  return isBought && (!values.absent || buyWhileAway(stage, mason, agents.merchant.url))
}

/** The user signs limits. A schedule then buys twice: within them, and beyond, which brings the user back. */
const buyWhileAway = async (stage: Stage, mason: Mason, merchant: string): Promise<boolean> => {
  await stage.buy(mason, toLimitsPrompt(merchant), answerQuestion)
  const request = { prompt: awayPrompt, user_id: 'ann' }
  const row = { name: 'espresso', cron: '0 8 1 * *', request }
  const { id } = await mason.call<{ id: string }>('POST', '/admin/v1/schedules', row)
  const fire = async (): Promise<boolean> => {
    stage.terminal.out.write(`\n${stage.terminal.colors.bold('schedule')} ${awayPrompt}\n`)
    const run = await mason.call<{ id: string }>('POST', `/admin/v1/schedules/${id}/run`)
    return stage.follow(mason, run.id, answerQuestion)
  }
  return (await fire()) && fire()
}

await runCommand((env) => openStage(env(), demo))
