import { type Mutant, testsOf } from './mutant.ts'

const hosts = testsOf('test/app/http/plumbing/auth.test.ts')
const sizes = testsOf('test/files/child/hostile-sizes.test.ts')
const formats = 'src/features/documents'

/** Small values that are refused, each with its reason. */
export const inputMutants: readonly Mutant[] = [
  {
    name: 'the text of a part is a text',
    file: 'src/features/a2a/server/messages.ts',
    edits: [{ from: "typeof value === 'string' && value.trim() !== '' ? null", to: 'true ? null' }],
    why: 'a number becomes a prompt, and a blank one a run',
    caughtBy: testsOf('test/features/a2a/a2a.test.ts')(
      "bad input of protocol '1.0' by 'JSONRPC' gets the error of the protocol, which names what is wrong",
      "bad input of protocol '0.3' by 'HTTP+JSON' gets the error of the protocol, which names what is wrong",
    ),
  },
  {
    name: 'a Host below localhost is a name',
    file: 'src/app/http/plumbing/auth.ts',
    edits: [{ from: '([a-z0-9-]{1,63}\\.){0,8}localhost', to: '(.+\\.)?localhost' }],
    why: 'with auth off, text that no browser resolves counts as this machine',
    caughtBy: hosts('a server with auth off with auth off a request to the host ..localhost gets 403'),
  },
  {
    name: 'a Host header is a host and a port, once',
    file: 'src/app/http/plumbing/request-hooks.ts',
    edits: [{ from: '    checkHost(request)\n', to: '' }],
    why: 'a cache or proxy in front and Mason may take two addresses from one request',
    caughtBy: hosts(
      'the Host header of a request is refused with 400 where it is "user@mason.example"',
      'the Host header is refused where there are two, also of one value, and where HTTP/1.1 has none',
    ),
  },
  {
    name: 'a null of A2A is an absent member',
    file: 'src/features/a2a/server/rpc.ts',
    edits: [{ from: 'params: omitNullMembers(params)', to: 'params' }],
    why: 'messages of clients in Python are refused',
    caughtBy: testsOf('test/features/a2a/a2a.test.ts')(
      "nulls of protocol '0.3' by 'JSONRPC' are absent members, as clients in Python send them",
    ),
  },
  {
    name: 'an id of the network is one that the database stores',
    file: 'src/features/payments/providers/agent.ts',
    edits: [{ from: 'named !== null && isReference(named) ? named : null', to: 'named' }],
    why: 'a payment that took the money stays open',
    caughtBy: testsOf('test/features/payments/agent-payments.test.ts')(
      'what agents wrote that the database cannot read keeps no payment of AP2 0.1 open',
    ),
  },
  {
    name: 'an id of a push configuration is one that the database stores',
    file: 'src/features/a2a/server/handler.ts',
    edits: [{ from: '|| !isStorableId(id)', to: '' }],
    why: 'an agent that deletes one address deletes another',
    caughtBy: testsOf('test/features/a2a/a2a.test.ts')(
      "pushes of protocol '1.0' by 'JSONRPC' are refused for private addresses, another caller, an id that is not stored as it is and an eleventh address",
    ),
  },
  {
    name: 'what the SDK of A2A cannot read is malformed',
    file: 'src/features/a2a/server/rpc.ts',
    edits: [{ from: 'error?.code === internalError', to: 'false' }],
    why: 'an agent reads words of a program, and takes its own error for one of ours',
    caughtBy: testsOf('test/features/a2a/a2a.test.ts')(
      "bad input of protocol '1.0' by 'JSONRPC' with a member of another type than the protocol gives it is malformed, not an error of ours",
      "bad input of protocol '0.3' by 'JSONRPC' with a member of another type than the protocol gives it is malformed, not an error of ours",
    ),
  },
  {
    name: 'the loose members of a checkout',
    file: 'src/features/payments/runs/reply-parts.ts',
    edits: [{ from: "typeof item.title === 'string' && quantity", to: 'quantity' }],
    why: 'the checkout of a merchant ends the run of who buys there',
    caughtBy: testsOf('test/features/payments/runs/reply-parts.test.ts')(
      'a checkout whose loose members are of any kind is an offer or a problem, never an error',
    ),
  },
  {
    name: 'the id of a cart that is not read by its types',
    file: 'src/features/payments/mandates/verify/carts.ts',
    edits: [{ from: "typeof value[name] === 'string' ? value[name]", to: 'true ? String(value[name])' }],
    why: 'a verifier stops with an error of ours',
    caughtBy: testsOf('test/features/payments/mandates/verify/carts.test.ts')(
      'a signed cart whose id is no text is refused, with its payment and in the demo profile too',
    ),
  },
  {
    name: 'the words of a vendor for the doctor',
    file: 'src/app/cli/doctor/registry.ts',
    edits: [{ from: "${readableJson('last_error')}->>", to: 'last_error->>' }],
    why: 'one answer of a vendor hides what is wrong with all keys',
    caughtBy: testsOf('test/models/health/model-health.test.ts')(
      'the doctor reads what a vendor said, also with NUL and half a surrogate pair',
    ),
  },
  {
    name: 'the name of a file at the command line',
    file: 'src/app/cli/request-files.ts',
    edits: [
      {
        from: '  if (error) throw new UsageError(`${path}: ${error.issues[0]?.message}`',
        to: '  if (false) throw new UsageError(`${path}: ${error?.issues[0]?.message}`',
      },
    ],
    why: 'the run is refused without a reason',
    caughtBy: testsOf('test/app/cli/request-files.test.ts')(
      'mason run says why it takes no file of a name that the state cannot hold',
    ),
  },
  {
    name: 'a reaction is no memory',
    file: 'src/features/user-memory/policy/rejection-rules.ts',
    edits: [{ from: 'reactions.some((reaction) => reaction.test(text))', to: 'false' }],
    why: '"I doubt it." is recalled in other conversations, where it is about nothing',
    caughtBy: testsOf('test/features/user-memory/policy/distil.test.ts')(
      'the reaction I doubt it. says nothing by itself and is not kept',
    ),
  },
  {
    name: 'the levels of XML',
    file: `${formats}/archive.ts`,
    edits: [{ from: 'elements.length > fileBounds.nesting', to: 'elements.length < 0' }],
    why: 'what is read of a document depends on the stack of its reader',
    caughtBy: sizes(
      'the process of a reader with 300 MB refuses a.pptx with 100,000 levels in its part ppt/slides/slide1.xml',
      'the process of a reader with 300 MB refuses a.odt with 100,000 levels in its part content.xml',
    ),
  },
  {
    name: 'the levels of a DOCX before it is parsed',
    file: `${formats}/docx.ts`,
    edits: [{ from: '? openXmlParser({}) : null', to: '? null : null' }],
    why: 'a document of 3 MB takes all the time that a file has',
    caughtBy: sizes(
      'the process of a reader with 300 MB refuses a DOCX whose 100,000 levels declare a namespace each',
    ),
  },
  {
    name: 'the stack of the parser of DOCX',
    file: `${formats}/docx.ts`,
    edits: [{ from: 'if (error instanceof RangeError) throw', to: "if (error.name === '') throw" }],
    why: 'a deep document is called a format that cannot be read',
    caughtBy: sizes(
      'the process of a reader with 300 MB refuses a DOCX of 100,000 levels behind a character that only its own parser takes',
    ),
  },
  {
    name: 'a page that the tree of a PDF does not hold',
    file: `${formats}/pdf.ts`,
    edits: [{ from: 'throw new DamagedFileError(error.message)', to: 'throw error' }],
    why: 'a damaged PDF is an error of ours in the log, and its sender does not learn why',
    caughtBy: sizes(
      'the process of a reader with 300 MB refuses a PDF with a page tree with the count 1 that is its own only child',
      'the process of a reader with 300 MB refuses a PDF with a page tree that has itself behind its first page',
    ),
  },
  {
    name: 'a PDF that takes all of the stack',
    file: 'src/files/protocol/child-protocol.ts',
    edits: [{ from: '/call stack/.test(detail)', to: 'false' }],
    why: 'its sender reads words of a program',
    caughtBy: sizes(
      'the process of a reader with 300 MB refuses a PDF with a page in which 100,000 lists are in each other',
    ),
  },
]
