import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { calling, say } from '../support/script.ts'
import { testInAll } from '../support/tier.ts'
import { browserMissing, type Console, expectWhole, go, openConsole } from './console.ts'
import { describeRuns } from './runs.ts'

const built = join(import.meta.dirname, '..', '..', 'dist', 'console')

describe.skipIf(browserMissing)('the build', () => {
  test('is small: the first page 150 KB, everything 250 KB, compressed', async () => {
    const names = (await readdir(join(built, 'assets'))).filter((name) => name.endsWith('.gz'))
    const sizes = await Promise.all(
      names.map(async (name) => [name, (await readFile(join(built, 'assets', name))).length] as const),
    )
    const sum = (some: typeof sizes) => some.reduce((bytes, [, size]) => bytes + size, 0)
    const first = sizes.filter(([name]) => name.startsWith('index-'))
    expect(first.length).toBeGreaterThan(1)
    expect(sum(first)).toBeLessThan(150_000)
    expect(sum(sizes)).toBeLessThan(250_000)
  })
})

/** Ways to run script from a text that is taken for HTML, an address or a template. */
const payloads = [
  ...[
    '<script>X</script>',
    '"><script>X</script>',
    '</title><script>X</script>',
    '<scr<script>ipt>X</script>',
  ],
  ...[
    '<img src=x onerror=X>',
    '<img src=x onerror="X">',
    '"><img src=x onerror=X>',
    "'><img src=x onerror=X>",
  ],
  ...[
    '<svg onload=X>',
    '<svg/onload=X>',
    '<svg><script>X</script></svg>',
    '<svg><animate onbegin=X attributeName=x>',
  ],
  ...['<body onload=X>', '<iframe srcdoc="<script>parent.X</script>">', '<iframe src="javascript:X">'],
  ...['<a href="javascript:X">a</a>', '[a](javascript:X)', '![a](x"onerror="X)', '<details open ontoggle=X>'],
  ...['<input autofocus onfocus=X>', '<select autofocus onfocus=X>', '<textarea autofocus onfocus=X>'],
  ...[
    '<video><source onerror=X></video>',
    '<audio src=x onerror=X>',
    '<marquee onstart=X>',
    '<object data="javascript:X">',
  ],
  ...[
    '<embed src="javascript:X">',
    '<form action="javascript:X"><button>a',
    '<button formaction="javascript:X">a',
  ],
  ...[
    '<math href="javascript:X">a</math>',
    '<base href="javascript:X//">',
    '<link rel=stylesheet href="data:,*{x:X}">',
  ],
  ...[
    '<style>@import "javascript:X"</style>',
    '<meta http-equiv=refresh content="0;url=javascript:X">',
    '{{X}}',
  ],
  ...[
    '$'.concat('{X}'),
    '<%= X %>',
    '#{X}',
    'javascript:X',
    'data:text/html,<script>X</script>',
    '&lt;script&gt;X&lt;/script&gt;',
  ],
  ...[
    '\u003cscript\u003eX\u003c/script\u003e',
    '%3Cscript%3EX%3C/script%3E',
    '<template><script>X</script></template>',
  ],
  ...[
    '<noscript><p title="</noscript><img src=x onerror=X>">',
    '<xss onclick=X style="display:block">a',
    '<dialog open onclose=X>',
  ],
  ...[
    '<div popover ontoggle=X id=p></div>',
    '<div style="background:url(javascript:X)">',
    '\u202e<img src=x onerror=X>\u200b',
  ],
].map((text) => text.replace('X', 'window.hit=(window.hit||0)+1'))

/** One server and one browser for all of these. */
let mason: Console
beforeAll(async () => {
  if (!browserMissing) mason = await openConsole()
})
afterAll(() => mason?.[Symbol.asyncDispose]())

describeRuns(() => mason)

describe.skipIf(browserMissing)('pages', () => {
  let run: { id: string; session_id: string }
  let reader: string
  const submit = (prompt: string): Promise<typeof run> =>
    mason.call('POST', '/v1/runs/wait', { prompt, user_id: 'ann' })

  beforeAll(async () => {
    say(mason.model, {
      planner: [calling(['calculate', { expression: '6 * 7' }]), { text: 'It is 42.' }],
    })
    run = await submit('What is six times seven?')
    say(mason.model, {
      planner: [calling(['ask_user', { question: 'Which color?', options: ['red', 'blue'] }])],
    })
    await submit('Paint it')
    reader = (await mason.createToken('developer', ['read'])).token
    mason.model.reset()
  })
  afterEach(() => mason?.checkPages())

  testInAll('language and theme are chosen and kept', async () => {
    // its choices would stay with the other tests
    const page = await mason.visit('/default/runs', { locale: 'en-US' })
    await page.getByLabel('Language').selectOption('zh')
    await page.getByRole('heading', { name: '运行', exact: true }).waitFor()
    await page.getByLabel('主题').selectOption('dark')
    await page.reload()
    await page.getByRole('heading', { name: '运行', exact: true }).waitFor()
    expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
  })

  test('50 payloads in prompts, answers and names stay text', { timeout: 180_000 }, async () => {
    expect(payloads.length).toBeGreaterThanOrEqual(50)
    const ids: string[] = []
    for (let at = 0; at < payloads.length; at += 13) {
      const text = payloads.slice(at, at + 13).join('\n')
      say(mason.model, { planner: [{ text }] })
      ids.push((await submit(text)).id)
    }
    await mason.call('POST', '/admin/v1/vendors', {
      name: payloads.find((one) => one.includes('<svg onload')),
    })
    mason.model.reset()
    const page = await mason.visit('/default/runs')
    const check = async (): Promise<void> => expect(await page.evaluate('window.hit ?? 0')).toBe(0)
    await page.locator('tbody tr').first().waitFor()
    await check()
    for (const path of ['sessions', 'admin/vendors', 'inbox', ...ids.map((id) => `runs/${id}?action=3`)]) {
      await go(page, `${mason.url}/console/default/${path}`)
      await check()
    }
  })

  test('right-to-left and zero-width characters are visible for what they are', async () => {
    say(mason.model, { planner: [{ text: 'safe\u202egnp.exe and z\u200bero' }] })
    const { id } = await submit('\u05e9\u05dc\u05d5\u05dd \u202eabc')
    mason.model.reset()
    const page = await mason.visit(`/default/runs/${id}`)
    await page.getByText('safe⟨U+202E⟩gnp.exe and z⟨U+200B⟩ero').first().waitFor()
    await page.getByRole('heading', { name: /⟨U\+202E⟩abc/ }).waitFor()
  })

  testInAll(
    'a question is answered in the inbox, and the second of two people sees that it has been answered',
    async () => {
      const [first, second] = await Promise.all([
        mason.visit('/default/inbox'),
        mason.visit('/default/inbox'),
      ])
      await second.getByRole('button', { name: 'red' }).waitFor()
      await second.route('**/v1/input-requests*', (route) => route.abort())
      say(mason.model, { planner: [{ text: 'Painted.' }] })
      await first.getByRole('button', { name: 'blue' }).click()
      await first.getByText('No question is open.').waitFor()
      await second.getByRole('button', { name: 'red' }).click()
      await second.getByText('Another person has answered this question first.').waitFor()
      mason.model.reset()
    },
  )

  test('a session goes on as a conversation', async () => {
    say(mason.model, { planner: [{ text: 'You are welcome.' }] })
    const page = await mason.visit(`/default/sessions/${run.session_id}`)
    await page.getByText('It is 42.').waitFor()
    await page.getByLabel('Message').fill('Thank you')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('You are welcome.').waitFor()
    mason.model.reset()
  })

  test('a session is deleted after one question that names it', async () => {
    say(mason.model, { planner: [{ text: 'Short.' }] })
    const { session_id } = await submit('Forget this')
    mason.model.reset()
    const page = await mason.visit(`/default/sessions/${session_id}`)
    await page.getByRole('button', { name: 'Delete session' }).click()
    await page.getByRole('dialog').getByText(session_id).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click()
    await page.waitForURL('**/sessions')
    await page.goto(`${mason.url}/console/default/sessions/${session_id}`)
    await page
      .getByRole('alert')
      .getByText(/there is no session/)
      .waitFor()
  })

  test('a token that only reads sees no write control, and no pages of admins', async () => {
    const page = await mason.visit('/default/runs', { token: reader })
    await page.locator('tbody tr').first().waitFor()
    expect(await page.getByRole('button', { name: 'New run' }).count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Vendors' }).count()).toBe(0)
    await page.goto(`${mason.url}/console/default/runs/${run.id}`)
    await page.locator('.row-line').first().waitFor()
    for (const name of ['Run again', 'Cancel run', 'Retry'])
      expect(await page.getByRole('button', { name }).count(), name).toBe(0)
    await page.goto(`${mason.url}/console/default/sessions/${run.session_id}`)
    await page.getByText('It is 42.').waitFor()
    expect(await page.getByRole('button', { name: /Send|Delete/ }).count()).toBe(0)
    await page.goto(`${mason.url}/console/default/admin/vendors`)
    await page.getByRole('alert').waitFor()
  })

  test('a wrong token is refused, signing out shows the form again', async () => {
    const page = await mason.open()
    await page.goto(`${mason.url}/console`)
    await page.getByLabel('Token').fill('not-a-token')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Token').fill(mason.adminToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL('**/console/default/runs')
    expect(await page.evaluate('document.cookie + JSON.stringify(localStorage)')).not.toContain(
      mason.adminToken,
    )
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
  })

  test('a token that is revoked while the page is open leads to the form, which says why', async () => {
    const made = await mason.createToken('short-lived', ['read'])
    const page = await mason.visit('/default/runs', { token: made.token })
    await page.locator('tbody tr').first().waitFor()
    await mason.call('DELETE', `/admin/v1/tokens/${made.id}`)
    await page.getByText('Your session has ended, or its token was revoked.').waitFor()
  })

  test('a vendor is added, changed and deleted, its key added and never shown', async () => {
    const page = await mason.visit('/default/admin/vendors')
    await page.getByRole('button', { name: 'Add' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/^name/).fill('Acme AI')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('link', { name: 'Acme AI' }).click()
    await page.getByRole('heading', { name: 'Acme AI' }).waitFor()
    await page.getByRole('button', { name: 'Edit' }).click()
    await dialog.getByLabel('homepage').fill('https://acme.example')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('https://acme.example').waitFor()
    await page.getByRole('link', { name: /^keys/ }).click()
    await page.getByRole('button', { name: 'Add' }).click()
    await dialog.getByLabel(/^label/).fill('production')
    await dialog.getByLabel(/^secret/).fill('sk-very-secret-key')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('link', { name: 'production' }).click()
    await page.getByRole('heading', { name: 'production' }).waitFor()
    await page.getByRole('button', { name: 'rotate' }).waitFor()
    expect(await page.content()).not.toContain('sk-very-secret-key')
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await page.waitForURL('**/keys')
  })

  test('a new token is shown once, and is in no address', async () => {
    const page = await mason.visit('/default/admin/tokens')
    await page.getByRole('button', { name: 'Add' }).click()
    await page
      .getByRole('dialog')
      .getByLabel(/^label/)
      .fill('shop')
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
    await page.getByText('This is shown once.').waitFor()
    const text = (await page.getByRole('dialog').textContent()) ?? ''
    const [token = ''] = /mason_[\w-]{10,}/.exec(text) ?? []
    expect(token).not.toBe('')
    expect(page.url()).not.toContain(token)
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    expect(await page.content()).not.toContain(token)
  })

  testInAll('a long list is loaded page after page', async () => {
    await Promise.all(Array.from({ length: 55 }, (_, at) => mason.createToken(`of many ${at}`, ['read'])))
    const page = await mason.visit('/default/admin/tokens')
    const rows = page.locator('tbody tr')
    await rows.nth(49).waitFor()
    expect(await rows.count()).toBe(50)
    await page.getByRole('button', { name: 'Load more' }).click()
    await rows.nth(54).waitFor()
  })

  testInAll('a file is found by its id, and deleted after one question that names it', async () => {
    const headers = { authorization: `Bearer ${mason.adminToken}`, 'x-file-name': 'notes.json' }
    const upload = await fetch(`${mason.url}/v1/files`, { method: 'POST', headers, body: 'bytes' })
    const file = (await upload.json()) as { id: string }
    const page = await mason.visit('/default/files')
    await page.getByLabel('id', { exact: true }).fill(file.id)
    await page.getByLabel('id', { exact: true }).press('Enter')
    await page.getByRole('cell', { name: 'notes.json' }).waitFor()
    expect(page.url()).toContain(file.id)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page
      .getByRole('dialog')
      .getByText(/notes\.json/)
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('Name a file by its id').waitFor()
    await go(page, `${mason.url}/console/default/files?id=${file.id}`)
    await page
      .getByRole('alert')
      .getByText(/there is no file/)
      .waitFor()
  })

  testInAll('a form says which field the server refuses', async () => {
    const page = await mason.visit('/default/admin/routes')
    await page.getByRole('button', { name: 'Add' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/^models/).fill('{not json')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByText(/not valid JSON: models/).waitFor()
    await dialog.getByLabel(/^models/).fill('[]')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByText(/\/models/).waitFor()
  })

  testInAll('after a restart of the server the page goes on by itself', async () => {
    say(mason.model, {
      planner: [calling(['ask_user', { question: 'After the restart?' }]), { text: 'Still here.' }],
    })
    const { id } = await submit('Survive')
    const page = await mason.visit(`/default/runs/${id}`)
    await page.getByText('After the restart?').first().waitFor()
    await mason.restart()
    await page.getByLabel('Your answer').fill('yes')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Still here.').first().waitFor()
    await expectWhole(page)
    mason.model.reset()
  })
})
