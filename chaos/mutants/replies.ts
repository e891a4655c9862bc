import { type Mutant, testsOf } from './mutant.ts'

const replies = testsOf('test/graph/replies.test.ts')
const shapes = testsOf('test/features/response-formats/built-in/reply-shapes.test.ts')

/** How the reply of a model is read: what was cut, failed or withheld is never taken as whole. */
export const replyMutants: readonly Mutant[] = [
  {
    name: 'a reply that was cut',
    file: 'src/models/chat/finish-reasons.ts',
    edits: [{ from: "if (meaning === 'cut') return 'length'\n", to: '' }],
    why: 'a call that was cut in the middle is made',
    caughtBy: [
      ...shapes('a reply of openai-chat that was cut is read as cut, with and without calls'),
      ...replies('a reply that was cut has no call made, and the model learns why: whole ones'),
    ],
  },
  {
    name: 'calls of a reply that is not whole',
    file: 'src/state/ports/models.ts',
    edits: [{ from: "finish === 'stop' || finish === 'tool_calls'", to: 'finish !== undefined' }],
    why: 'a call that was cut in the middle is made',
    caughtBy: [
      ...testsOf('test/nodes/dialects.test.ts')(
        'bad input of such a model calls whose reply ended for an unknown reason are refused with that reason',
      ),
      ...replies('a reply that was cut has no call made, and the model learns why: whole ones'),
    ],
  },
  {
    name: 'the end of a chat completion',
    file: 'src/models/providers/openai/reply-draft.ts',
    edits: [{ from: 'return ended || finish !== null ? undefined : truncatedError', to: 'return undefined' }],
    why: 'calls are made before the vendor has said that they are whole',
    caughtBy: testsOf('test/models/providers/openai/errors.test.ts')(
      'a bad reply of the kind end_without_finish is model_unavailable after 3 requests, and forgotten when the next one is good',
    ),
  },
  {
    name: 'the end of a stream of any format',
    file: 'src/features/response-formats/provider/format-draft.ts',
    edits: [{ from: 'ended || !marksItsEnd ? undefined : truncatedError', to: 'undefined' }],
    why: 'calls are made before the vendor has said that they are whole',
    caughtBy: testsOf('test/features/response-formats/provider/errors.test.ts')(
      'a stream that ends in good order without saying so is cut short',
    ),
  },
  {
    name: 'a reply that failed',
    file: 'src/features/response-formats/formats/result-draft.ts',
    edits: [{ from: "finish !== null && readFinishMeaning(finish) === 'failed'", to: 'false' }],
    why: 'what a vendor calls malformed is taken as an answer',
    caughtBy: shapes('a reply of gemini-generate-content that failed is an error'),
  },
  {
    name: 'a whole message replaces the calls before it',
    file: 'src/features/response-formats/formats/result-draft.ts',
    edits: [{ from: 'if (whole !== null && found.length > 0) calls.restart()', to: '' }],
    why: 'a call is made twice',
    caughtBy: shapes('a whole message after the events of a format replaces them'),
  },
  {
    name: 'a whole chat completion replaces the calls before it',
    file: 'src/models/providers/openai/reply-draft.ts',
    edits: [{ from: 'if (isWhole && message.toolCalls.length > 0) calls.restart()', to: '' }],
    why: 'a call is made twice',
    caughtBy: replies('a whole message after deltas has its call made once, also under another id'),
  },
  {
    name: 'arguments by the strict parser',
    file: 'src/graph/call-body.ts',
    edits: [
      {
        from: 'tryParseJson(text))',
        to: 'tryParseJson(/[}\\]]\\s*$/.test(text) ? text : `${text}"}`))',
      },
    ],
    why: 'half of an argument is acted on',
    caughtBy: testsOf('test/nodes/interpret.test.ts')(
      'reading a reply of the planner arguments "{\\"query\\": \\"half" are refused with what is wrong',
    ),
  },
  {
    name: 'digits beyond 2^53',
    file: 'src/models/transport/json-parser.ts',
    edits: [
      {
        from: 'return parseExactJson(line, size)',
        to: 'return JSON.parse(line)',
      },
    ],
    why: 'an order is paid or deleted under the id of another',
    caughtBy: shapes(
      'a reply of gemini-generate-content keeps the digits of its arguments, to the planner and back',
    ),
  },
  {
    name: 'digits of arguments beyond 2^53',
    file: 'src/state/text/json-size.ts',
    edits: [{ from: 'return parseExactJson(text, size)', to: 'return JSON.parse(text)' }],
    why: 'an order is paid or deleted under the id of another',
    caughtBy: replies('calls hold integers beyond 2^53 as text with their digits'),
  },
  {
    name: 'JSON is never stitched',
    file: 'src/models/call/cut-replies.ts',
    edits: [{ from: 'if (isJsonReply) {', to: 'if (isJsonReply && text.length < 0) {' }],
    why: 'two halves that do not fit are one value',
    caughtBy: replies(
      'a reply that was cut is not continued where it is JSON: it is asked for once more, shorter',
    ),
  },
  {
    name: 'an alias replaces whole words',
    file: 'src/models/call/error-messages.ts',
    edits: [{ from: '(isPart ? name : alias)', to: 'alias' }],
    why: 'an error names what the vendor never said',
    caughtBy: replies(
      'on the way to a vendor and back an alias replaces the name of a model as a whole word only',
    ),
  },
  {
    name: 'a placeholder of the usage',
    file: 'src/models/chat/token-counts.ts',
    edits: [{ from: 'after[name] || (before[name] ?? after[name])', to: 'after[name] ?? before[name]' }],
    why: 'a reply costs nothing',
    caughtBy: replies('on the way to a vendor and back a placeholder of the usage replaces no counts'),
  },
]
