import { readWords } from '../fleet/job.ts'
import { seededPick, seededShare } from '../seeded-choice.ts'
import { lookupResult } from './ledger.ts'

/**
 * `calculate` and the looks are pure: `big` brings more than an action holds; `stumble` fails and is a task to be retried
 * later. `ask` asks a person, the others change something at the ledger.
 */
export type StepKind = 'calculate' | 'look' | 'big' | 'stumble' | 'keyed' | 'queryable' | 'manual' | 'ask'

/** One run to be: what its model answers round by round, as given in its prompt. Calls of a round are made together. */
export type Script = { name: string; rounds: readonly (readonly StepKind[])[] }

export type Job = Script & {
  /** Milliseconds after its admission at which it is cancelled, or null. */
  cancelAfterMs: number | null
  /** Submitted again under the same key once it was accepted. */
  isRepeated: boolean
  priority?: number
}

/** Turns of one session, in order. `pipelined`: all are submitted before the first has ended. */
export type Session = { id: string; jobs: readonly Job[]; pipelined: boolean }

/** Rounds and how many of twenty are so. */
const mix: readonly (readonly StepKind[])[] = [
  ['calculate'],
  ['calculate'],
  ['calculate'],
  ['calculate'],
  ['look'],
  ['big', 'calculate'],
  ['look', 'look', 'calculate'],
  ['look', 'look', 'look', 'calculate'],
  ['keyed'],
  ['keyed'],
  ['keyed'],
  ['keyed', 'calculate'],
  ['queryable'],
  ['queryable'],
  ['queryable', 'look'],
  ['keyed', 'queryable'],
  ['manual'],
  ['manual'],
  ['ask'],
  ['ask', 'look'],
]

/** The nth session of a seed: the same on every machine. */
export const sessionOf = (seed: number, nth: number): Session => {
  const id = `s${nth}`
  const turns = 1 + Math.floor(seededShare(seed, id, 'turns') * 4)
  const jobs = Array.from({ length: turns }, (_, at): Job => {
    const name = `${id}t${at + 1}`
    const rounds = 1 + Math.floor(seededShare(seed, name, 'rounds') * 3)
    return {
      name,
      rounds: Array.from({ length: rounds }, (_, round) => seededPick(mix, seed, name, round)),
      cancelAfterMs:
        seededShare(seed, name, 'cancel') < 0.04 ? seededShare(seed, name, 'when') ** 2 * 3000 : null,
      isRepeated: seededShare(seed, name, 'again') < 0.15,
    }
  })
  return { id, jobs, pipelined: seededShare(seed, id, 'pipelined') < 0.5 }
}

export const promptOf = ({ name, rounds }: Script): string =>
  `job ${name}: ${rounds.map((round) => round.join('+')).join(' ')}`

/** Reads a script back. */
export const scriptIn = (text: string): Script => {
  const { name, words } = readWords(text)
  return { name, rounds: words.map((round) => round.split('+') as StepKind[]) }
}

const toolOf: Record<StepKind, string> = {
  calculate: 'calculate',
  look: 'ledger_look',
  big: 'ledger_look',
  stumble: 'ledger_stumble',
  keyed: 'ledger_keyed',
  queryable: 'ledger_queryable',
  manual: 'ledger_manual',
  ask: 'ask_user',
}

export type Call = { id: string; item: string; kind: StepKind; tool: string; args: Record<string, string> }

/** The calls of one round. `item` names the call in the whole campaign, at the ledger too. */
export const callsOf = (script: Script, round: number, ledgerUrl: string): Call[] =>
  (script.rounds[round] ?? []).map((kind, index) => {
    const item = `${script.name}.${round}.${index}`
    const args: Record<string, string> =
      kind === 'calculate'
        ? { expression: `${round + 1} * ${index + 1}` }
        : kind === 'ask'
          ? { question: `May ${item} go on?` }
          : { url: ledgerUrl, item, ...(kind === 'big' && { how: 'big' }) }
    return { id: item, item, kind, tool: toolOf[kind], args }
  })

/** A result that is too large for a prompt: its start, and how the rest is read. */
const startOf = (text: string): RegExp => {
  const head = text.slice(0, 500).replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(
    `^${head}[^]*\\n\\[cut: [^]*; read_result with action_id \\d+(?: and from \\d+)? reads the rest\\]$`,
  )
}

/** What a call may bring, as the model reads it. Only what a provider leaves open may end in more than one way. */
export const resultsOf = ({ kind, item }: Call, round: number, index: number): (string | RegExp)[] => {
  switch (kind) {
    case 'calculate':
      return [`${round + 1} * ${index + 1} = ${(round + 1) * (index + 1)}`]
    case 'look':
      return [lookupResult(item, false)]
    case 'big':
      return [startOf(lookupResult(item, true))]
    case 'stumble':
      return ['Error: the ledger is shut']
    case 'ask':
      return [`yes ${item}`]
    default:
      return [`did ${item}`, 'confirmed by an operator', /^Error: /]
  }
}

/** What a person answers to a question of the script. */
export const answerTo = (question: string): string => `yes ${/^May (\S+) go on\?$/.exec(question)?.[1]}`

export const answerOf = (name: string, results: readonly string[]): string =>
  `Done ${name}: ${JSON.stringify(results)}`
