import { expect, test } from 'vitest'
import { formatCliError, toExitCode } from '../../../src/app/cli/errors.ts'
import { readClientError } from '../../../src/client/client-error.ts'
import { MasonError } from '../../../src/state/errors.ts'

const respond = (status: number, code: string) =>
  readClientError(
    Response.json({ code, detail: 'what the server says', request_id: 'req_1' }, { status }),
    'the server',
    'pass a token',
  )

test('an error of the server itself is printed with the request id that its log has', async () => {
  expect(formatCliError(await respond(500, 'internal'), {})).toBe(
    'mason: what the server says\n  request id: req_1',
  )
  expect(formatCliError(await respond(404, 'not_found'), {})).toBe('mason: what the server says')
})

test('an invalid request is wrong usage, and what is wrong is printed once', async () => {
  const errors = [{ pointer: '/limit', detail: 'must be an integer from 1 to 200' }]
  const refuse = (detail: string, errors: object[]) =>
    readClientError(
      Response.json({ code: 'invalid_request', detail, errors }, { status: 422 }),
      'the server',
      'pass a token',
    )
  const one = await refuse('/limit: must be an integer from 1 to 200', errors)
  expect(toExitCode(one)).toBe(2)
  expect(formatCliError(one, {})).toBe('mason: /limit: must be an integer from 1 to 200')
  const two = await refuse('the request has 2 errors', [
    ...errors,
    { pointer: '/status', detail: 'is unknown' },
  ])
  expect(formatCliError(two, {})).toBe(
    'mason: the request has 2 errors\n  /limit  must be an integer from 1 to 200\n  /status  is unknown',
  )
})

test('what the message has already is not printed again', () => {
  const errors = ['tool "a" is defined twice']
  const error = new MasonError('invalid_graph', `the graph cannot be built:\n- ${errors[0]}`, {
    detail: { errors },
  })
  expect(formatCliError(error, {})).toBe(`mason: ${error.message}`)
})
