import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { builtInFormats } from '../../../../src/features/response-formats/built-in/built-in-formats.ts'
import {
  compileTemplate,
  findTemplateErrors,
} from '../../../../src/features/response-formats/templates/request-template.ts'
import { toTemplateData } from '../../../../src/features/response-formats/templates/template-data.ts'
import type { CanonicalMessage, CanonicalRequest } from '../../../../src/models/ports/model-ports.ts'
import type { RequestTemplate } from '../../../../src/models/schemas/response-format.ts'
import type { Json } from '../../../../src/state/runtime-state.ts'
import { askOf, canary, modelOf } from '../../../support/http-call.ts'

const model = modelOf(null, 'http://127.0.0.1:1')
const render = (template: RequestTemplate, ask: Partial<CanonicalRequest> = {}, key = canary) =>
  compileTemplate(template).render(
    toTemplateData(model, askOf(ask), { stream: ask.stream ?? false, schemaInPrompt: false }),
    key,
  )
const bodyOf = (body: Json, ask: Partial<CanonicalRequest> = {}): unknown => {
  const text = render({ body } as RequestTemplate, ask).body as string | null
  return text === null ? undefined : JSON.parse(text)
}

describe('a request template', () => {
  it('turns a text that is one expression into its value, and joins one with more in it', () => {
    const ask = { parameters: { temperature: 0, stop: ['a'] }, query: 'q' }
    expect(
      bodyOf(
        {
          a: '{{temperature}}',
          b: '{{ stop }}',
          c: 'say {{query}} to {{model}}',
          d: '{{temperature}}/{{stop}}',
        },
        ask,
      ),
    ).toEqual({ a: 0, b: ['a'], c: 'say q to upstream-1', d: '0/["a"]' })
  })

  it('leaves out what is null, and keeps a null of its own', () => {
    const body = {
      a: '{{query}}',
      b: null,
      c: ['{{query}}', 1, null],
      d: 'x{{query}}y',
      e: { f: '{{seed}}' },
    }
    expect(bodyOf(body)).toEqual({ b: null, c: [1, null], d: 'xy', e: {} })
  })

  it('finds the end of an expression with braces and quotes of its own', () => {
    const ask = { query: 'q' }
    expect(bodyOf({ a: '{{{b: {c: query}}}}' }, ask)).toEqual({ a: { b: { c: 'q' } } })
    expect(bodyOf({ a: "{{'}}'}} and {{'{{'}}" }, ask)).toEqual({ a: '}} and {{' })
    expect(bodyOf({ a: "{{'it\\'s'}}{{`\"}}\"`}}" }, ask)).toEqual({ a: "it's}}" })
  })

  it('may be a body alone, or say how and where it is sent', () => {
    expect(render({ q: '{{query}}' }, { query: 'x' })).toEqual({
      method: 'POST',
      path: '',
      headers: {},
      body: '{"q":"x"}',
    })
    const full = {
      method: 'PUT',
      path: 'ask/{{query}}?m={{model}}',
      stream_path: '/stream',
      headers: { 'X-Q': 'a {{query}}', 'X-None': '{{seed}}' },
      body: {},
    } as const
    expect(render(full, { query: 'a/b?c' })).toEqual({
      method: 'PUT',
      path: '/ask/a%2Fb%3Fc?m=upstream-1',
      headers: { 'x-q': 'a a/b?c' },
      body: '{}',
    })
    expect(render(full, { query: 'x', stream: true }).path).toBe('/stream')
    expect(render({ method: 'GET', path: '/x', headers: {}, body: {} }).body).toBeNull()
  })

  it('puts the key into headers, and nowhere else', () => {
    const { headers, body } = render({
      headers: { 'x-key': 'Key {{key}}' },
      body: { k: "{{parameters.key || 'none'}}" },
    })
    expect(headers).toEqual({ 'x-key': `Key ${canary}` })
    expect(body).toBe('{"k":"none"}')
  })

  it('sees nothing that objects inherit', () => {
    expect(
      bodyOf({
        a: '{{parameters.constructor}}',
        b: '{{parameters.toString}}',
        c: '{{parameters.constructor.name}}',
      }),
    ).toEqual({})
  })

  it('can do what vendors ask for', () => {
    const ask = {
      parameters: {
        x: '{"a":1}',
        list: [
          { r: 'u', c: [1] },
          { r: 'u', c: [2] },
          { r: 'a', c: [3] },
        ],
      },
    }
    expect(
      bodyOf(
        { a: '{{from_json(parameters.x)}}', b: "{{from_json('{')}}", c: '{{to_json(parameters.x)}}' },
        ask,
      ),
    ).toEqual({
      a: { a: 1 },
      c: '"{\\"a\\":1}"',
    })
    expect(bodyOf({ a: "{{join_neighbours(parameters.list, 'r', 'c')}}" }, ask)).toEqual({
      a: [
        { r: 'u', c: [1, 2] },
        { r: 'a', c: [3] },
      ],
    })
    expect(bodyOf({ a: '{{compact({b: query, c: role})}}' })).toEqual({ a: { c: 'planner' } })
  })
})

describe('an error in a template', () => {
  const deep = (levels: number): Json => (levels === 0 ? 'x' : [deep(levels - 1)])
  it.each([
    [/not a JMESPath expression/, '/a', { a: '{{messages[}}' }],
    [/has no }}/, '/body/a/0', { body: { a: ['{{ query'] } }],
    [/no expression/, '/a', { a: '{{}}' }],
    [/there is no field promt; there are: model, messages/, '/a', { a: '{{promt}}' }],
    [/no field promt/, '/a', { a: "{{(messages[?role == 'user'].content | [0]) || promt}}" }],
    [/no variable \$y/, '/a', { a: '{{let $x = query in $y}}' }],
    [/frobnicate/, '/a', { a: '{{frobnicate(query)}}' }],
    [/in headers only/, '/a', { a: '{{key}}' }],
    [/in headers only/, '/path', { path: '/{{key}}', body: {} }],
    [/unknown field; there are: method, path/, '/bodi', { bodi: 1, body: {} }],
    [/.+/, '/method', { method: 'PATCH', body: {} }],
    [/set by the connection/, '/headers/Host', { headers: { Host: 'x' }, body: {} }],
    [/not the name of a header/, '/headers/a b', { headers: { 'a b': 'x' }, body: {} }],
    [/no field nope/, '/a~1b~0c', { 'a/b~c': '{{nope}}' }],
    [/longer than 4000/, '/a', { a: `{{${'x'.repeat(5000)}}}` }],
    [/longer than/, '', { a: 'x'.repeat(300_000) }],
    [/more than 1000 expressions/, '/b', { a: '{{prompt}}'.repeat(1000), b: '{{prompt}}', c: '{{prompt}}' }],
    [/nested deeper/, expect.stringMatching(/^(\/0)+$/), deep(100)],
  ] as [RegExp, string, RequestTemplate][])('%s at %s', (detail, pointer, template) => {
    const errors = findTemplateErrors(template)
    expect(errors).toContainEqual({ pointer, detail: expect.stringMatching(detail) })
  })

  it('is reported for an expression of any depth', () => {
    const nested = `{{${'('.repeat(1900)}promt${')'.repeat(1900)}}}`
    expect(findTemplateErrors({ a: nested })).toMatchObject([{ pointer: '/a' }])
  })

  it('is nothing where a name belongs to a piece of the request, not to the request', () => {
    const fine = [
      '{{messages[].whatever}}',
      '{{messages[?strange].x | [0].y}}',
      '{{map(&anything, messages)}}',
      '{{parameters.vendor_option}}',
      '{{let $m = model in messages[].{m: $m, c: content}}}',
      '{{messages[].{m: $.model}}}',
      '{{tools ? {a: tools[0].name} : `null`}}',
    ]
    for (const text of fine) expect(findTemplateErrors({ a: text })).toEqual([])
    expect(findTemplateErrors({ a: '{{messages[].{m: $.modell}}}' })).toHaveLength(1)
  })

  it('shows only when it is filled, where it depends on what is asked', () => {
    expect(() => bodyOf({ a: { b: '{{length(query)}}' } })).toThrow(/length/)
    const doubling = `{{${Array.from({ length: 25 }, () => '[@, @]').join(' | ')}}}`
    expect(() => bodyOf({ a: doubling })).toThrow(/more than 1000000 values/)
    expect(() => bodyOf({ a: "{{pad_left('y', `70000000`, 'x')}}" })).toThrow(/more than 67108864 characters/)
  })
})

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'a', '{{key}}', '{{', canary.slice(3, 9)),
)
const anyCall = fc.record({ id: anyText, name: anyText, arguments: fc.oneof(anyText, fc.json()) })
const anyPart = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text: anyText }),
  fc.record({
    type: fc.constant('image_url' as const),
    image_url: fc.record({ url: fc.oneof(anyText, fc.constant('data:image/png;base64,AAAA'), fc.webUrl()) }),
  }),
)
const anyMessage: fc.Arbitrary<CanonicalMessage> = fc.oneof(
  fc.record({ role: fc.constantFrom('system' as const, 'user' as const), content: anyText }),
  fc.record({ role: fc.constant('user' as const), content: fc.array(anyPart, { maxLength: 3 }) }),
  fc.record({
    role: fc.constant('assistant' as const),
    content: anyText,
    tool_calls: fc.array(anyCall, { maxLength: 3 }),
  }),
  fc.record({ role: fc.constant('tool' as const), content: anyText, tool_call_id: anyText }),
)
const anyObject = fc.dictionary(anyText, fc.jsonValue() as fc.Arbitrary<Json>, { maxKeys: 4 })
const orNull = <Value>(values: fc.Arbitrary<Value>) => fc.option(values, { nil: null })
const anyAsk: fc.Arbitrary<CanonicalRequest> = fc.record({
  role: anyText,
  messages: fc.array(anyMessage, { maxLength: 6 }),
  tools: fc.array(fc.record({ name: anyText, description: anyText, parameters: anyObject }), {
    maxLength: 3,
  }),
  schema: orNull(anyObject),
  input: fc.array(anyText, { maxLength: 3 }),
  query: orNull(anyText),
  prompt: orNull(anyText),
  parameters: fc.oneof(
    anyObject,
    fc.dictionary(
      fc.constantFrom('temperature', 'stop', 'tool_choice', 'max_tokens', 'thinking', 'dimensions', 'n'),
      fc.jsonValue() as fc.Arbitrary<Json>,
    ),
  ),
  stream: fc.boolean(),
})

describe.each(builtInFormats().map(({ name, request }) => [name, request] as const))(
  'the request of %s',
  (_, template) => {
    it('is valid', () => {
      expect(findTemplateErrors(template)).toEqual([])
    })

    it('is filled for any request, and never holds the key outside a header', () => {
      const compiled = compileTemplate(template)
      const property = fc.property(anyAsk, fc.boolean(), (ask, schemaInPrompt) => {
        const data = toTemplateData(model, ask, { stream: ask.stream, schemaInPrompt })
        const { body: bytes, path } = compiled.render(data, canary)
        const body = bytes && Buffer.from(bytes).toString()
        expect(`${path} ${body}`).not.toContain(canary)
        // a form
        if (bytes instanceof Uint8Array) return
        expect(body === null || body.isWellFormed()).toBe(true)
        const sent = JSON.parse(body ?? 'null') as Record<string, unknown>
        expect(JSON.stringify(sent)).toBe(body)
      })
      fc.assert(property, { numRuns: 60 })
    })
  },
)
