import { interleaved, type Mutant, testsOf } from './mutant.ts'

const admit = testsOf('test/engine/runs/admit.test.ts')
const intake = testsOf('test/features/intake/intake.test.ts')
const guards = testsOf('test/engine/runs/last-guards.test.ts')
const input = testsOf('test/engine/runs/input.test.ts')
const turnOrder = testsOf('test/features/intake/turn-order.test.ts')
const leaders = testsOf('test/engine/runs/orders.test.ts')(
  'in every order a leader of the intake is killed or frozen at each point, and another one leads',
)
const file = 'src/engine/runs/admission.ts'
const statement = 'src/engine/runs/admission-statement.ts'
const batches = 'src/features/intake/intake-batches.ts'

/** Guards on the way in: of submitted runs, of queue jobs, of answers and cancels. */
export const admissionMutants: readonly Mutant[] = [
  {
    name: 'idempotency key kept with the run',
    file: statement,
    edits: [{ from: 'WHERE a.key IS NOT NULL ORDER BY', to: 'WHERE false ORDER BY' }],
    why: 'a request that is sent again becomes a second run',
    caughtBy: [
      ...admit('one key and the same body, in whatever order of its fields, gives the same run'),
      interleaved,
    ],
  },
  {
    name: 'idempotency key looked up in the statement that admits',
    file: statement,
    edits: [{ from: 'i.route = a.route AND i.key = a.key', to: 'i.route = a.route AND i.key IS NULL' }],
    why: 'a request that is sent again is answered with a fault',
    caughtBy: [
      ...admit('one key and the same body, in whatever order of its fields, gives the same run'),
      interleaved,
    ],
  },
  {
    name: 'idempotency key: the loser of a race is given the winner',
    file,
    edits: [{ from: 'if (!isUniqueViolation(error)) throw error', to: 'if (error) throw error' }],
    why: 'of two equal requests at one moment one is answered with a fault',
    caughtBy: guards(
      'two at the same moment the second of two requests with one key waits for the first and is given its run',
    ),
  },
  {
    name: 'idempotency key unique in the table',
    file: 'migrations/20261127_02_engine.sql',
    edits: [{ from: ',\n  PRIMARY KEY (tenant, route, key)', to: '' }],
    why: 'two equal requests at one moment become two runs',
    caughtBy: guards(
      'two at the same moment the second of two requests with one key waits for the first and is given its run',
    ),
  },
  {
    name: 'request hash compared',
    file,
    edits: [{ from: 'earlier.request_hash === hash &&', to: 'earlier.request_hash !== null &&' }],
    why: 'another request under the same key is answered with the wrong run',
    caughtBy: [...admit('one key and another body is a conflict, and leaves nothing'), interleaved],
  },
  {
    name: 'session of its user only',
    file: statement,
    edits: [
      { from: 'WHERE s.user_id = EXCLUDED.user_id', to: '' },
      { from: 'WHERE f.user_id = f.owner', to: '' },
    ],
    why: "a user's run reads another user's session",
    caughtBy: admit('sessions of another user are refused, and no turn is used up'),
  },
  {
    name: 'outbox: wake-up in admission',
    file: statement,
    edits: [
      {
        from: 'SELECT $1, run_id, run_at FROM run\n',
        to: 'SELECT $1, run_id, run_at FROM run WHERE false\n',
      },
    ],
    why: 'a run that was accepted while the queue was down waits for the reconciler',
    caughtBy: [
      ...admit('one key sent 20 times at once makes one run, with one turn, one wake-up and one session'),
      interleaved,
    ],
  },
  {
    name: 'job id is the idempotency key',
    file: batches,
    edits: [
      {
        from: 'const key = { route: submitRoute, key: id }',
        to: 'const key = { route: submitRoute, key: crypto.randomUUID() }',
      },
    ],
    why: 'a job that Redis delivers twice becomes two runs',
    caughtBy: intake('a job on the public queue sent again under its id is the same run'),
  },
  {
    name: 'intake: a job that met an error that passes is held',
    file: batches,
    edits: [
      {
        from: "const passes = isLocked || isMasonError(error, 'too_many_requests') || passesSoon(error)",
        to: 'const passes = false',
      },
    ],
    why: 'a job is rejected because its business was full for a moment',
    caughtBy: turnOrder(
      'a job that must wait holds the later ones of its session, and only those, until it is admitted',
    ),
  },
  {
    name: 'intake: only the leader of this epoch admits',
    file: 'src/features/intake/intake-lease.ts',
    edits: [
      {
        from: 'WHERE epoch = ${epoch}::bigint AND lease_until > clock_timestamp() FOR SHARE',
        to: 'FOR SHARE',
      },
    ],
    why: 'a leader that was frozen admits jobs after those that came later',
    caughtBy: [
      ...turnOrder(
        'an admission of the queue is refused whole for a leader whose lease has ended, also where no other one leads',
      ),
      ...leaders,
    ],
  },
  {
    name: 'intake: a leader begins with what another one had taken',
    file: 'src/features/intake/intake-leader.ts',
    edits: [{ from: 'else if (!known.has(id)) {', to: 'else if (id === null) {' }],
    why: 'the jobs of a leader that died are lost',
    caughtBy: [
      ...turnOrder(
        'the leader of the intake begins with what another one had taken, at its place, and counts it before it takes anything',
      ),
      ...leaders,
    ],
  },
  {
    name: 'intake: the run of a job that is refused unparsed is looked for only where it is signed',
    file: 'src/features/intake/lost-jobs.ts',
    edits: [
      {
        from: 'if (findSignatureError(job.id, signed, secrets, clock.now()) !== null) return null',
        to: 'findSignatureError(job.id, signed, secrets, clock.now())',
      },
    ],
    why: "a forged job gets the id of another business's run",
    caughtBy: turnOrder('a deadly job ends with the run of its id only where it is signed as that was'),
  },
  {
    name: 'intake: a worker that has just begun tries no job that others were lost with',
    file: 'src/features/intake/lost-jobs.ts',
    edits: [{ from: 'if (isSuspect) await clock.sleep(quietMs)', to: 'void isSuspect' }],
    why: 'a job is refused because workers are killed soon after their start',
    caughtBy: turnOrder('a deadly job is none that workers were lost beside which had just begun'),
  },
  {
    name: 'answer: only to an open question',
    file: 'src/engine/runs/input-answers.ts',
    edits: [
      {
        from: 'AND i.request_id = $3 AND i.answered_at IS NULL RETURNING',
        to: 'AND i.request_id = $3 RETURNING',
      },
    ],
    why: 'a second answer replaces the first',
    caughtBy: input('an answer counts once, also when ten come at the same moment'),
  },
  {
    name: 'answer: not to a question that has expired',
    file: 'src/engine/runs/input-answers.ts',
    edits: [{ from: 'if (row.answered || row.expired || ', to: 'if (row.answered || ' }],
    why: 'an answer is taken after the run went on without it',
    caughtBy: [
      ...input(
        'a question without an answer expires: the run goes on with an error as its result, and a late answer is refused',
      ),
      interleaved,
    ],
  },
  {
    name: 'outbox: wake-up with the answer',
    file: 'src/engine/runs/input-answers.ts',
    edits: [
      {
        from: 'wake_up AS (INSERT INTO outbox (tenant, run_id) SELECT $1, run_id FROM run)',
        to: 'wake_up AS (SELECT)',
      },
    ],
    why: 'an answered run waits for the reconciler',
    caughtBy: [interleaved],
  },
  {
    name: 'expiry: only of questions still waited for',
    file: 'src/engine/runs/input-answers.ts',
    edits: [
      {
        from: 'i.expires_at <= clock_timestamp() AND r.status IN ${openStatusesSql}',
        to: 'i.expires_at <= clock_timestamp()',
      },
      {
        from: 'AND r.run_id = late.run_id AND r.status IN ${parkedStatusesSql} RETURNING',
        to: 'AND r.run_id = late.run_id RETURNING',
      },
      { from: 'WHERE i.answered_at IS NULL AND i.expires_at', to: 'WHERE i.expires_at' },
    ],
    why: 'a run that has ended is queued again',
    caughtBy: [interleaved],
  },
  {
    name: 'cancel: not of a run that has ended',
    file: 'src/engine/runs/settlement.ts',
    edits: [{ from: 'AND status IN ${openStatusesSql} RETURNING', to: 'RETURNING' }],
    why: 'a run that has completed says that it is to be cancelled',
    caughtBy: [
      ...testsOf('test/engine/runs/cancel.test.ts')(
        'cancelling is refused for a run that has completed, and for one that is not there',
      ),
      interleaved,
    ],
  },
]
