import { type Mutant, testsOf } from './mutant.ts'

const limits = testsOf('test/models/metering/meter.test.ts')
const lost = testsOf('test/models/metering/meter-failures.test.ts')
const failures = testsOf('test/models/call/failures.test.ts')
const fallback = testsOf('test/models/call/fallback.test.ts')
const registry = testsOf('test/models/registry/vendors.test.ts')
const health = testsOf('test/models/health/health.test.ts')
const migration = 'migrations/20261127_04_models.sql'
const ledgerWriter = 'src/models/metering/meter.ts'
const request = 'src/models/call/metered-request.ts'
const call = 'src/models/call/model-call.ts'
const verdicts = 'src/models/call/error-verdicts.ts'

/** What a request to a model costs, who pays it, and which model is asked next. */
export const modelMutants: readonly Mutant[] = [
  {
    name: 'a request is in the ledger once',
    file: migration,
    edits: [
      { from: 'request_id text NOT NULL UNIQUE,', to: 'request_id text NOT NULL,' },
      { from: 'ON CONFLICT (request_id) DO NOTHING\n    RETURNING', to: 'RETURNING' },
    ],
    why: 'a settlement that is sent again is billed twice',
    caughtBy: [
      ...limits(
        'the ledger has one row a request, with who asked for what and its cost, however often it is settled',
      ),
      ...lost(
        'a database that comes and goes has every entry once in the end, also where the answer of a statement was lost',
      ),
    ],
  },
  {
    name: 'an entry waits for the database',
    file: ledgerWriter,
    edits: [{ from: 'if (!isDatabaseUnavailable(error)) throw error', to: 'throw error' }],
    why: 'what was spent while the database restarts is in no ledger',
    caughtBy: lost(
      'a database that comes and goes has every entry once in the end, also where the answer of a statement was lost',
    ),
  },
  {
    name: 'a reservation ends with its request',
    file: migration,
    edits: [
      {
        from: 'DELETE FROM usage_reservations r USING given WHERE',
        to: 'DELETE FROM usage_reservations r USING given WHERE false AND',
      },
    ],
    why: 'requests that are over count at their estimates, and a key is at its limit too early',
    caughtBy: limits('limits of tokens a minute count what is reserved until the true figure is known'),
  },
  {
    name: 'a reservation that comes too late is given back',
    file: request,
    edits: [{ from: 'granted && meter.settle(reservation, nothingSent)', to: 'granted' }],
    why: 'a caller that left keeps a part of the limit',
    caughtBy: failures(
      'a caller that aborts before the first byte waits for no database, and what it grants later is given back',
    ),
  },
  {
    name: 'a reservation whose answer was lost is given back',
    file: 'src/models/metering/meter.ts',
    edits: [{ from: '(row) => background.settle(toReleaseRow(row))', to: '() => {}' }],
    why: 'a request that was never sent counts until the sweep',
    caughtBy: lost('a database that comes and goes reserves nothing for a request that was never made'),
  },
  {
    name: 'a limit counts the request that asks',
    file: migration,
    edits: [
      { from: 'spent.requests + granted + 1 > held.rpm', to: 'spent.requests + granted > held.rpm' },
      {
        from: 'spent.tokens + granted_tokens + ask.tokens > held.tpm',
        to: 'spent.tokens + granted_tokens > held.tpm',
      },
    ],
    why: 'one request more than the vendor allows is sent',
    caughtBy: limits(
      'limits of requests hold over processes, and say when it is worth trying again',
      'limits of tokens a minute count what is reserved until the true figure is known',
    ),
  },
  {
    name: 'a request that was aborted is billed',
    file: request,
    edits: [{ from: 'outcome === null ? received.sent :', to: 'outcome === null ? false :' }],
    why: 'a business that aborts each request pays for none',
    caughtBy: failures(
      'a caller that aborts before the first byte pays for what was sent, as far as we can tell',
    ),
  },
  {
    name: 'a run asks for its budget',
    file: 'src/models/call/models-port.ts',
    edits: [{ from: '(await findReachedBudget?.(caller)) ?? null', to: 'null as object | null' }],
    why: 'a run that is under way spends more than its business may',
    caughtBy: testsOf('test/features/budgets/budgets.test.ts')(
      'a budget on costs ends a running run as `cost`',
    ),
  },
  {
    name: 'a key in the words of a vendor',
    file: 'src/models/call/call-errors.ts',
    edits: [{ from: "text.replaceAll(secret, '[key]')", to: 'text' }],
    why: 'the error of a run shows the key of the vendor',
    caughtBy: testsOf('test/models/providers/openai/errors.test.ts')(
      'a status whose text echoes the key does not show it',
    ),
  },
  {
    name: 'at most half of a secret is shown',
    file: 'src/models/registry/vendor-keys.ts',
    edits: [{ from: 'Math.min(4, Math.floor(secret.length / 2))', to: '4' }],
    why: 'an admin reads the whole of a short secret',
    caughtBy: registry('a key is sealed, and never shown'),
  },
  {
    name: 'the headers of an endpoint',
    file: 'src/models/registry/endpoints.ts',
    edits: [{ from: "isPublicHeader(name) ? value : '…'", to: 'value' }],
    why: 'an admin reads the secret of a vendor',
    caughtBy: registry(
      'an endpoint is added, shown, changed and deleted; values of headers that may be secrets are not shown',
    ),
  },
  {
    name: 'the words of vendors are for admins',
    file: 'src/models/call/error-messages.ts',
    edits: [{ from: 'if (isRequestError(error)) return replaceName', to: 'if (error) return replaceName' }],
    why: 'a business reads accounts, addresses and models of the vendor',
    caughtBy: failures('a call that fails names each candidate once to callers that may not see keys'),
  },
  {
    name: 'the key of another business',
    file: 'src/models/routing/key-pools.ts',
    edits: [{ from: '(to.business_id === null || to.business_id === business_id) &&', to: '' }],
    why: 'a business pays with the key of another',
    caughtBy: testsOf('test/models/routing/choose.test.ts')(
      "which key the caller's own first, then the shared pool",
    ),
  },
  {
    name: 'the thoughts of a model go to its own vendor',
    file: call,
    edits: [{ from: 'models.get(message.reasoning.by)?.vendor.id !== vendor.id', to: 'false' }],
    why: 'a vendor gets what is confidential of another',
    caughtBy: failures(
      'the reasoning of a model before its calls is sent back to its own vendor only, whichever model of the vendor is called',
    ),
  },
  {
    name: 'prompts of one business close nothing for another',
    file: 'src/models/health/health-rules.ts',
    edits: [
      { from: "isSame(one, latest)) ? 'business' : 'prompt'", to: "isSame(one, latest)) ? 'all' : 'prompt'" },
    ],
    why: 'a business stops the runs of all others',
    caughtBy: health('a shared subject is closed for one business by two of its prompts, and for no other'),
  },
  {
    name: 'a success between two failures',
    file: 'src/models/health/health-rules.ts',
    edits: [{ from: 'filter(({ atMs }) => atMs > goodAtMs)', to: 'filter(() => true)' }],
    why: 'two failures an hour apart close a model that works',
    caughtBy: health('a shared subject is not closed for all by two businesses with a success between'),
  },
  {
    name: 'words that a vendor quotes from the prompt',
    file: verdicts,
    edits: [{ from: 'const isCertain = !isQuotation(error.words, ask)', to: 'const isCertain = true' }],
    why: 'a prompt disables a key for all',
    caughtBy: fallback(
      'what a request may have caused disables no key for others: words that the vendor quotes from the prompt',
    ),
  },
  {
    name: 'who has not failed there probes first',
    file: 'src/models/health/health-rules.ts',
    edits: [
      { from: 'seen.find((one) => isSame(one, identity))?.failures ?? 0', to: 'identity === null ? 1 : 0' },
    ],
    why: 'a prompt that a vendor fails at keeps its model closed, one failed probe after the other',
    caughtBy: health('a closed subject is probed first by those that have not failed there'),
  },
  {
    name: 'all probes of a candidate go to one call',
    file: 'src/models/health/model-health.ts',
    edits: [{ from: 'if (leftMs > 0) {', to: 'if (leftMs > 2 ** 50) {' }],
    why: 'a vendor that has just come back gets the requests of all runs at once',
    caughtBy: health('a closed subject gives all probes of a candidate to one call, or none'),
  },
  {
    name: 'the only candidate cools for 5 s at most',
    file: 'src/models/health/model-health.ts',
    edits: [{ from: "isOnly && kind === 'cool' ? cooling.maxMs * onlyShare : Number", to: 'Number' }],
    why: 'a blip of the only model stops all runs for a minute',
    caughtBy: health(
      'a closed subject cools for half of its time at least, and the only one of a route for 5 s at most',
    ),
  },
  {
    name: 'health knows of the only candidate',
    file: request,
    edits: [{ from: 'isOnly: only.model && (only.key || !isOfKey)', to: 'isOnly: false' }],
    why: 'a blip of the only model stops all runs for a minute',
    caughtBy: fallback('the only model of a route cools for 5 s at most, one of two for longer'),
  },
  {
    name: 'others are asked before a candidate is asked again',
    file: call,
    edits: [
      {
        from: 'if (error.retryNow === true && mayGoOn) continue',
        to: 'if (error.retry && mayGoOn) continue',
      },
    ],
    why: 'the fallback is never asked',
    caughtBy: fallback('a call asks each candidate twice and eight in all'),
  },
  {
    name: 'time for the other candidates',
    file: call,
    edits: [{ from: 'if (firstByteMs <= shareMs) return model', to: 'return model' }],
    why: 'a silent model takes the time of the whole call',
    caughtBy: fallback('a silent model leaves time for the rest of the route'),
  },
  {
    name: 'no other model once text went out',
    file: call,
    edits: [{ from: 'hasEmitted && selector.oneShot === true', to: 'false' }],
    why: 'a client reads the answers of two models in one',
    caughtBy: testsOf('test/models/call/model-calls.test.ts')(
      'a failure after the first token gives a node a new attempt, and the OpenAI-compatible endpoint an end',
    ),
  },
  {
    name: 'a content filter is a result',
    file: verdicts,
    edits: [{ from: "  code === 'model_content_filtered' ||\n", to: '' }],
    why: 'what one vendor withholds is asked of the next',
    caughtBy: fallback(
      "which model answers after how many requests 'a content filter' Azure",
      "which model answers after how many requests 'a content filter' OpenAI",
    ),
  },
]
