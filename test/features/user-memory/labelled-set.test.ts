import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  type DistillReply,
  deriveLessonByRules,
  distillInstructions,
  distilParts,
  type EndedTurn,
  toLesson,
} from '../../../src/features/user-memory/policy/lessons.ts'
import { judgeNote, type Note } from '../../../src/features/user-memory/policy/memory-gate.ts'
import { askForLesson } from '../../../src/features/user-memory/store/distill-run.ts'
import { lessonOf } from '../../support/memory.ts'
import { modelsOf } from '../../support/memory-run.ts'
import { never } from '../../support/models.ts'

type Labelled = {
  id: string
  language: 'en' | 'zh' | 'de' | 'es' | 'ja'
  message: string
  document: string | null
  statement: string
  kind: 'fact' | 'preference' | 'instruction'
  evidence: string
  source: 'user' | 'document' | 'assistant'
  judge: NonNullable<DistillReply['memories']>[number]['stance']
  keep: boolean
}

/** The development set is by the author of the gate; the held-out one by another, and not seen while the gate was written. */
const sets = ['development', 'held-out'].flatMap((set) => {
  const file = new URL(`labelled/${set}.jsonl`, import.meta.url)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return [
    { set, rows: lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as Labelled) },
  ]
})

const turnOf = ({ message, document }: Labelled): EndedTurn => ({
  prompt: message,
  answer: document,
  turn: 1,
  summary: '',
  memories: [],
})
const isKept = (note: Omit<Note, 'source_action_ids'>): boolean => judgeNote(note, []).keep

/** Through the call that learns, whose model proposes the statement and says of its evidence what a judge says. */
const keptWithJudge = async (row: Labelled): Promise<boolean> => {
  const { evidence, statement, kind, judge } = row
  const memories = [{ ...lessonOf(kind, evidence, statement), stance: judge }]
  const models = modelsOf(() => ({ text: JSON.stringify({ memories, summary: 's' }) }))
  const turn = turnOf(row)
  const reply = await askForLesson(models, distillInstructions, distilParts(turn), never())
  if (!reply) throw new Error(`${row.id}: the scripted reply is invalid`)
  return toLesson(reply, turn).notes.some(isKept)
}

const withoutSpace = (text: string): string => text.normalize('NFKC').replace(/\s+/g, '')
/** By rules a sentence is kept as it is: it counts where it is the evidence of the statement. */
const keptByRules = async (row: Labelled): Promise<boolean> =>
  deriveLessonByRules(turnOf(row)).notes.some(
    (note) => isKept(note) && withoutSpace(note.evidence).includes(withoutSpace(row.evidence)),
  )

const measure = async (rows: readonly Labelled[], keeps: (row: Labelled) => Promise<boolean>) => {
  const wrong: string[] = []
  for (const row of rows) if ((await keeps(row)) !== row.keep) wrong.push(`${row.id} ${row.statement}`)
  const bad = rows.filter(({ keep }) => !keep)
  const isWrong = ({ id }: Labelled): boolean => wrong.some((one) => one.startsWith(`${id} `))
  const slipped = bad.filter(isWrong).length
  const lost = wrong.length - slipped
  return { bad: bad.length, good: rows.length - bad.length, slipped, lost, wrong }
}

describe.each(sets)('the memory gate, on the $set set', ({ set, rows }) => {
  test('refuses at least 97 % of the bad statements and loses at most 4 % of the good, with a judge', async () => {
    const judged = await measure(rows, keptWithJudge)
    const ruled = await measure(rows, keptByRules)
    for (const [how, { bad, good, slipped, lost }] of Object.entries({ judge: judged, 'rules alone': ruled }))
      console.log(
        `gate, ${set} set, ${how}: ${bad - slipped} of ${bad} bad refused, ${lost} of ${good} good lost`,
      )
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
    expect(judged.bad).toBeGreaterThan(0)
    expect(judged.good).toBeGreaterThan(0)
    expect(1 - judged.slipped / judged.bad, judged.wrong.join('\n')).toBeGreaterThanOrEqual(0.97)
    expect(judged.lost / judged.good, judged.wrong.join('\n')).toBeLessThanOrEqual(0.04)
  })
})
