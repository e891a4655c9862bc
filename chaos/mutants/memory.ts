import { type Mutant, testsOf } from './mutant.ts'

const attacks = testsOf('test/features/user-memory/recall-attacks.test.ts')
const turns = testsOf('test/features/user-memory/turns.test.ts')
const search = 'src/features/user-memory/store/turn-search.ts'
const embedder = 'src/features/user-memory/store/embedder.ts'

/** What is recalled: a user's own turns, of other sessions, and nothing that was forgotten. */
export const memoryMutants: readonly Mutant[] = [
  {
    name: 'turns of another user',
    file: 'src/features/user-memory/store/user-scope.ts',
    edits: [
      { from: 'work, { user: user_id })', to: 'work, { user: everyUser })' },
      { from: 'work, { user: user_id, pipelined', to: 'work, { user: everyUser, pipelined' },
    ],
    why: 'a statement without its condition recalls what others said',
    caughtBy: attacks(
      'of what one user said, nothing is recalled under the role of the API by another user, another business or without a user',
    ),
  },
  {
    name: 'turns of the session itself',
    file: search,
    edits: [
      { from: "where: 'AND session_id <> $7'", to: "where: 'AND (session_id <> $7 OR true)'" },
      { from: 't.session_id <> $5 AND t.said_at', to: '(t.session_id <> $5 OR true) AND t.said_at' },
    ],
    why: 'a prompt has what it has already, in place of what other sessions say',
    caughtBy: turns(
      'an ended turn is not recalled in its own session, and two of a session and five in all at most',
    ),
  },
  {
    name: 'two turns of a session',
    file: search,
    edits: [{ from: 'maxTurnsOfSession = 2', to: 'maxTurnsOfSession = 3' }],
    why: 'one session takes the place of all others',
    caughtBy: turns(
      'an ended turn is not recalled in its own session, and two of a session and five in all at most',
    ),
  },
  {
    name: 'the turns of a user who is forgotten',
    file: 'src/features/user-memory/store/forget.ts',
    edits: [{ from: 'await deleteTurns(sql, owner, null)', to: '' }],
    why: 'what a user had forgotten is recalled',
    caughtBy: attacks('what is forgotten is recalled no more, also after the background has run a user'),
  },
  {
    name: 'turns from before the user was forgotten',
    file: 'src/features/user-memory/store/turn-backlog.ts',
    edits: [{ from: "user_id = $3), '-infinity')", to: "user_id = $3 AND false), '-infinity')" }],
    why: 'a forgotten turn is read from its run again',
    caughtBy: attacks(
      'what is forgotten is recalled no more, also after the background has run a user whose business leaves recall out and has it again',
    ),
  },
  {
    name: 'a turn that grew while it was embedded',
    file: 'src/features/user-memory/store/embed-turns.ts',
    edits: [{ from: 'AND t.number = g.number AND t.content = g.content', to: 'AND t.number = g.number' }],
    why: 'the vector of a turn is that of another text',
    caughtBy: attacks(
      'an embedding model that answers after a turn has grown is asked again: the turn is found by all of it',
    ),
  },
  {
    name: 'a space is of one model',
    file: embedder,
    edits: [{ from: 'entry?.active && toSpace(entry) === space', to: 'entry?.active' }],
    why: 'vectors of two models are compared',
    caughtBy: testsOf('test/features/user-memory/store/embedder.test.ts')(
      'a space is of one model: its vectors are made no more once the alias is of another',
    ),
  },
  {
    name: 'vectors of one space have one length',
    file: embedder,
    edits: [{ from: 'if (length === expected) continue', to: 'if (length > 0) continue' }],
    why: 'vectors of two models are compared',
    caughtBy: testsOf('test/features/user-memory/memory.test.ts')(
      'the embedding model that gives vectors of another size is refused, and both sizes are named',
    ),
  },
  {
    name: 'vectors of standing texts by their space',
    file: 'src/features/user-memory/store/text-similarity.ts',
    edits: [{ from: '`${space} ${one}`', to: 'one' }],
    why: 'vectors of two models are compared',
    caughtBy: testsOf('test/features/user-memory/store/text-similarity.test.ts')(
      'standing texts are embedded once for all callers, and again when the model changes',
    ),
  },
  {
    name: 'an answer that repeats what is forgotten',
    file: 'src/features/user-memory/store/distill-run.ts',
    edits: [{ from: 'answer !== null && !repeatsMemory(answer, forgotten)', to: 'answer !== null' }],
    why: 'a model says what was forgotten, and later sessions recall it',
    caughtBy: testsOf('test/features/user-memory/forgetting.test.ts')(
      'what was said before it was forgotten does not come back through the answer of a later turn whose session still has it in its log',
    ),
  },
]
