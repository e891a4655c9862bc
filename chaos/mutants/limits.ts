import { type Mutant, testsOf } from './mutant.ts'

/** What keeps one business, token, job or pattern from taking what all others need. */
export const limitMutants: readonly Mutant[] = [
  {
    name: "a token's share of request bodies",
    file: 'src/app/http/plumbing/body-budget.ts',
    edits: [{ from: 'share > tokenBytes', to: 'false' }],
    why: 'the stalled uploads of one token take the memory of all',
    caughtBy: testsOf('test/app/http/plumbing/body-budget.test.ts')(
      'stalled bodies of one token take no more than its share: it gets 429, other tokens are answered',
    ),
  },
  {
    name: 'the bytes of a page of a list',
    file: 'src/infra/database/pagination.ts',
    edits: [{ from: 'OR page_bytes <= ', to: 'OR true OR page_bytes <= ' }],
    why: 'one list of long rows exhausts the heap of an API process',
    caughtBy: testsOf('test/app/lists.test.ts')(
      'every list of the API has no more rows than asked for and no more bytes than a page, and its cursor leads to the rest',
    ),
  },
  {
    name: 'the budget of a business, a user or a token',
    file: 'src/features/budgets/budget-checks.ts',
    edits: [{ from: 'max !== null && BigInt(spent) >= BigInt(max)', to: 'false' }],
    why: 'a business spends more than it may',
    caughtBy: testsOf('test/features/budgets/budgets.test.ts')(
      'a budget on costs refuses runs and calls with 429 until it resets or is raised',
      'a budget on costs ends a running run as `cost`',
    ),
  },
  {
    name: 'the answer to who reads budgets while one is changed',
    file: 'src/features/budgets/budget-checks.ts',
    edits: [{ from: 'ignoreFetchAbort: true', to: 'ignoreFetchAbort: false' }],
    why: 'each change of a budget answers 500 to the runs of all businesses that are submitted at that moment',
    caughtBy: testsOf('test/features/budgets/budgets.test.ts')(
      'a change of budgets refuses no run whose budgets are being read, and what was read before it is not kept',
    ),
  },
  {
    name: 'the quota on storage and requests',
    file: 'src/accounts/shared-counter.ts',
    edits: [{ from: 'count.used + count.own + more > count.max', to: 'false' }],
    why: 'a business fills the disk of all',
    caughtBy: testsOf('test/accounts/quotas.test.ts')(
      'a business stores no more than its quota; what it deletes makes room',
      'a business above its requests a minute gets 429 with Retry-After, others do not',
    ),
  },
  {
    name: 'the time of a pattern',
    file: 'src/files/run-files.ts',
    edits: [{ from: 'maxMs: 1500', to: 'maxMs: 600_000' }],
    why: 'one pattern keeps a run, and a process, for ever',
    caughtBy: testsOf('test/app/log-searches.test.ts')(
      'a pattern that takes too long is refused with what to do, and the worker goes on meanwhile',
    ),
  },
  {
    name: 'the space between claims for a business whose runs find no model',
    file: 'src/engine/worker/thread-shares.ts',
    edits: [
      { from: 'unservedAt.has(business) && waitMs > 0', to: 'unservedAt.has(business) && waitMs > 2 ** 50' },
    ],
    why: 'a flood of one business fills the thread of a worker, and runs of others take five times as long',
    caughtBy: testsOf('test/engine/worker/thread-shares.test.ts')(
      'a business whose run found no model waits after each claim while another is at work, and the other does not',
    ),
  },
  {
    name: 'the fewer visits at once of a business beside another',
    file: 'src/engine/worker/thread-shares.ts',
    edits: [{ from: 'Math.max(1, count >> level)', to: 'count' }],
    why: 'each step of a run comes after those of eight visits of a flood of slow runs',
    caughtBy: testsOf('test/engine/worker/thread-shares.test.ts')(
      'a business has the fewer visits at once the busier the thread is, while another is at work',
    ),
  },
  {
    name: 'the claim after that space',
    file: 'src/engine/worker/worker.ts',
    edits: [{ from: 'if (waits.size > 0) pollIn', to: 'if (waits.size < 0) pollIn' }],
    why: 'a run whose wake-up was dropped waits for the reconciler',
    caughtBy: testsOf('test/engine/runs/relay.test.ts')(
      'a worker beside a flood claims the runs of a business that it held up, without another wake-up and while none has ended',
    ),
  },
  {
    name: 'the signature of a queue job',
    file: 'src/features/intake/job-signatures.ts',
    edits: [
      {
        from: '!secrets.some((secret) => timingSafeEqual(toJobMac(secret, time, id, payload), given))',
        to: 'false',
      },
    ],
    why: 'a producer without the secret who can write to Redis acts for any business',
    caughtBy: testsOf('test/features/intake/intake.test.ts')(
      'a signed job becomes a run of the business that it was signed for, once, and no other job does',
    ),
  },
]
