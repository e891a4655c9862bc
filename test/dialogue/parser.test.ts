import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createDialogueParser, maxReplyChars } from '../../src/dialogue/parser.ts'
import { readReply } from '../../src/dialogue/reply.ts'
import { type DialoguePart, writeDialogue } from '../../src/dialogue/write.ts'
import { dialogues, readPutBack, readSplit, replies, splitAt } from '../support/dialogues.ts'

const call = (body: string, tool = 't', server = 's'): string =>
  `<${server}><${tool}>${body}</${tool}></${server}>`
const run = '<execute_tools />'
const bodies = (text: string): string[][] =>
  readReply(text).blocks.map(({ calls }) => calls.map(({ body }) => body))

describe('a reply in the language', () => {
  test('is a thought, what is said, a block and the order to run it', () => {
    const text = `<think>First a, then b.</think>
I look.
<sequential>
    <files><read>a.txt</read></files>
    <files>
      <search>{"q": "x"}</search>
    </files>
</sequential>
${run}`
    expect(readReply(text)).toEqual({
      ...{ thought: 'First a, then b.', said: 'I look.', answer: null, answers: 0 },
      blocks: [
        {
          ...{ block: 'sequential', line: 3 },
          calls: [
            { server: 'files', tool: 'read', body: 'a.txt', block: 'sequential', index: 0, line: 4 },
            { server: 'files', tool: 'search', body: '{"q": "x"}', block: 'sequential', index: 1, line: 5 },
          ],
        },
      ],
      ...{ isExecuted: true, error: null, written: text, cut: null },
    })
  })

  test.each([
    ['code', 'if a < b and c > d: print("</b>&amp;<![CDATA[")'],
    ['a closing tag of the tool that none of the server follows', 'a</t>b</t> </x></t>c'],
    ['tags of the language', `<think></answer></parallel>${run}<result index="0">x</result>`],
    ['another call', call('x', 'u', 'v')],
    ['nothing', ''],
    ['white space', ' \n\t '],
  ])('has a raw body: %s', (_, body) => {
    expect(bodies(`${call(body)}${run}`)).toEqual([[body]])
  })

  test('has a body that ends at the first closing tag of the tool that one of the server follows', () => {
    expect(readReply(`<s><t>a</t> \n </s>b</t></s>${run}`)).toMatchObject({
      said: 'b</t></s>',
      blocks: [{ calls: [{ body: 'a' }] }],
    })
  })

  test('has a thought that ends at its first closing tag, in which calls are text', () => {
    const { thought, blocks } = readReply(`<think>a <think> ${call('x')} ${run}</think>${call('y')}${run}`)
    expect(thought).toBe(`a <think> ${call('x')} ${run}`)
    expect(blocks).toHaveLength(1)
  })

  test('has an answer that ends at its last closing tag', () => {
    const answer = `Write <answer>x</answer>, then ${run}.`
    expect(readReply(`<answer>${answer}</answer>\n`)).toMatchObject({
      answer,
      answers: 1,
      said: '',
      error: null,
    })
  })

  test('has the last of two answers', () => {
    expect(readReply('<answer>a</answer> No. <answer>b</answer></answer>')).toMatchObject({
      ...{ answer: 'b</answer>', answers: 2, said: 'No.', error: null },
    })
  })

  test('has both where an answer is beside calls, before or after them', () => {
    for (const text of [
      `<answer>a</answer>${call('<answer>')}${run}`,
      `${call('<answer>')}<answer>a</answer>${run}`,
    ])
      expect(readReply(text)).toMatchObject({
        answer: 'a',
        blocks: [{ calls: [{ body: '<answer>' }] }],
        isExecuted: true,
      })
  })

  test.each([
    '1 < 2',
    'a <b>bold</b> word',
    '</b>',
    '<b class="x"><i>y</i>',
    '<T',
    '<thin',
    '<',
    '</',
    '<!-- x -->',
    '<a>x<b>',
  ])('that is text alone stays text: %s', (text) => {
    expect(readReply(text)).toMatchObject({
      said: text,
      blocks: [],
      answer: null,
      error: null,
      cut: null,
      written: text,
    })
  })

  test('keeps its blocks apart, the last of which is the one that is run', () => {
    const { blocks, isExecuted } = readReply(
      `${call('a')}${call('b')}<parallel>${call('c')}</parallel> now ${run}`,
    )
    expect(blocks.map(({ block }) => block)).toEqual(['single', 'single', 'parallel'])
    expect(isExecuted).toBe(true)
    expect(readReply(call('a'))).toMatchObject({
      isExecuted: false,
      error: null,
      blocks: [{ block: 'single' }],
    })
  })
})

describe('a reply that breaks the rules', () => {
  test.each([
    [run, `there is no call before ${run}`],
    ['a\n<think>b', 'line 2: <think> is not closed: expected </think>'],
    ['<answer>b', 'line 1: <answer> is not closed: expected </answer>'],
    ['\n\n<s><t>b</t>', 'line 3: <s><t> is not closed: expected </t></s>'],
    [`<parallel>${call('a')}`, 'line 1: <parallel> is not closed: expected </parallel>'],
    [`<parallel>\n${call('a')}\n</sequential>`, 'line 3: </sequential>: expected a call or </parallel>'],
    [`<parallel>${call('a')}${run}`, `line 1: ${run}: expected a call or </parallel>`],
    [`<parallel>\n<sequential>`, 'line 2: <sequential>: expected a call or </parallel>'],
    [`<parallel>\n<parallel>`, 'line 2: <parallel>: expected a call or </parallel>'],
    ['<sequential> </sequential>', 'line 1: </sequential>: expected a call'],
    ['<sequential>\nfirst', 'line 2: text: expected a call or </sequential>'],
    ['<sequential><s>first', 'line 1: <s>: expected the tag of a tool after <s>'],
    ['<sequential></s>', 'line 1: </s>: expected a call or </sequential>'],
    ['a</think>', 'line 1: </think>: expected <think> before it'],
    [`${call('a')}</parallel>`, 'line 1: </parallel>: expected <parallel> before it'],
    ['</answer>', 'line 1: </answer>: expected <answer> before it'],
    ['</result>', 'line 1: </result>: expected <result> before it'],
    ['<execute_tools>', 'line 1: <execute_tools: expected <execute_tools />'],
    ['<execute_tools ', 'line 1: <execute_tools : expected <execute_tools />'],
    ['<think >', 'line 1: <think: expected <think>'],
  ])('is refused: %j', (text, error) => {
    expect(readReply(text).error).toBe(error)
  })

  test('has its first error alone, and still ends where it ends', () => {
    const text = `</think><parallel></b>${run}<result index="0">no</result>`
    const events = readSplit([text])
    expect(events.filter(({ kind }) => kind === 'error')).toHaveLength(1)
    expect(readReply(text).written).toBe(`</think><parallel></b>${run}`)
  })

  test('has more than 64 calls, in one block or in many', () => {
    const error = 'a reply has at most 64 calls; this one has more'
    expect(readReply(`<parallel>${call('a').repeat(200)}</parallel>${run}`).error).toBe(error)
    expect(readReply(call('a').repeat(65)).error).toBe(error)
    expect(bodies(`<parallel>${call('a').repeat(64)}</parallel>`)[0]).toHaveLength(64)
  })
})

describe('what a model writes for others', () => {
  test.each([
    [`${call('a')}\n${run}\n<result index="0">fake</result>`, `${call('a')}\n${run}`, 'execute_tools', 32],
    [`${call('a')}\n${run}${call('b')}`, `${call('a')}\n${run}`, 'execute_tools', 15],
    [`${call('a')}\n<result index="0">fake`, call('a'), 'result', 22],
    [`${call('a')}\n<result`, call('a'), 'result', 7],
    ['It is 4.<result>', 'It is 4.', 'result', 8],
  ])('is cut and counted: %j', (text, written, at, chars) => {
    expect(readReply(text)).toMatchObject({ written, cut: { at, chars }, error: null })
  })

  test('is not white space', () => {
    expect(readReply(`${call('a')}${run}\n \n`)).toMatchObject({ written: `${call('a')}${run}`, cut: null })
  })

  test.each([call('a'), `${call('a')}\n${run}`, '<answer>4 </answer>', 'It is 4.'])(
    'is written without white space at its end, also where a vendor cuts it at <result: %j',
    (text) => {
      for (const end of ['', '\n', ' \r\n\n', '\n<result index="0">'])
        expect(readReply(`${text}${end}`).written).toBe(text)
    },
  )

  test('is known at once', () => {
    const parser = createDialogueParser()
    parser.push(`${call('a')}<execute_tools /`)
    expect(parser.isOver).toBe(false)
    expect(parser.push('>')).toEqual([{ kind: 'execute', line: 1 }])
    expect(parser.isOver).toBe(true)
  })
})

describe('a reply of 2 MB', () => {
  const long = 'x'.repeat(2 * maxReplyChars)
  const cut = { at: 'size' }

  test('is cut at 1 MB, and its answer or text can be used', () => {
    expect(readReply(`<answer>${long}`)).toMatchObject({
      error: null,
      cut,
      answer: long.slice(0, maxReplyChars - 8),
    })
    expect(readReply(long)).toMatchObject({ error: null, cut: { at: 'size', chars: maxReplyChars } })
    expect(readReply(`a${'💩'.repeat(maxReplyChars)}`).said.isWellFormed()).toBe(true)
  })

  test('is refused where the cut is inside a thought or a call', () => {
    expect(readReply(`<think>${long}</think>`)).toMatchObject({
      cut,
      error: expect.stringContaining('not closed'),
    })
    expect(readReply(call(long))).toMatchObject({ cut, error: expect.stringContaining('not closed') })
  })
})

test('texts that stream hold no half tags and no half characters', () => {
  const parser = createDialogueParser()
  const text = `<think>a</think>b 💩<answer>c </b></answer>`
  const pieces = [
    ...[...Array(text.length).keys()].flatMap((at) => parser.push(text[at] ?? '')),
    ...parser.end(),
  ]
  const streamed = pieces.flatMap((event) => (event.kind === 'text' ? [event.text] : []))
  expect(streamed.join('')).toBe('ab 💩c </b>')
  expect(streamed.every((piece) => piece.isWellFormed() && !/^<$|<\/?(think|answer)/.test(piece))).toBe(true)
})

test('a reply means the same however it is split', () => {
  fc.assert(
    fc.property(
      fc.oneof(replies, dialogues.map(writeDialogue)),
      fc.array(fc.nat(), { maxLength: 12 }),
      (text, places) => {
        const whole = readSplit([text])
        expect(readSplit(splitAt(text, places))).toEqual(whole)
        expect(readSplit(text.split(''))).toEqual(whole)
      },
    ),
    { numRuns: 1000 },
  )
})

test('what is written is read as it was', () => {
  fc.assert(
    fc.property(dialogues, (parts) => {
      expect(readDialogue(writeDialogue(parts))).toEqual(parts.map(withOneBlock))
    }),
    { numRuns: 500 },
  )
})

const toResult = (text: string, index: number): DialoguePart => ({ kind: 'result', index, text })

/** One call alone has no block. */
const withOneBlock = (part: DialoguePart): unknown =>
  part.kind === 'calls' ? { ...part, block: part.calls.length > 1 ? part.block : 'single' } : part

/** The parts of a dialogue: replies, each followed by what was put back. */
const readDialogue = (text: string): unknown[] => {
  const { thought, blocks, answer, written, error } = readReply(text)
  expect(error).toBeNull()
  const parts: unknown[] = [
    ...(text.startsWith('<think>') ? [{ kind: 'think', text: thought }] : []),
    ...blocks.map(({ block, calls }) => ({
      ...{ kind: 'calls', block, calls: calls.map(({ server, tool, body }) => ({ server, tool, body })) },
    })),
    ...(answer === null ? [] : [{ kind: 'answer', text: answer }]),
  ]
  const rest = text.slice(written.length + 1)
  const texts = readPutBack(rest)
  const next = rest.slice(writeDialogue(texts.map(toResult)).length + 1)
  parts.push(...texts.map(toResult))
  return next === '' ? parts : [...parts, ...readDialogue(next)]
}
