import { expect, test } from 'vitest'
import { formatCliError } from '../../../src/app/cli/errors.ts'
import { readClientError } from '../../../src/client/client-error.ts'

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
