import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe from 'axe-core'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'
import { expect } from 'vitest'
import { type Running, startCli } from '../support/cli.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'
import { type PathProxy, startPathProxy } from './path-proxy.ts'

/** The console in a real browser, served by a real process over an embedded database. */

const root = join(import.meta.dirname, '..', '..')
const executablePath = process.env.MASON_TEST_CHROMIUM ?? '/usr/bin/chromium'

/** Why tests in a browser are skipped, or null. */
export const browserMissing = !existsSync(executablePath)
  ? `${executablePath} is missing: install chromium, or set MASON_TEST_CHROMIUM`
  : !existsSync(join(root, 'dist', 'console', 'index.html'))
    ? 'the console is not built: npm run build:console'
    : null
if (browserMissing) console.log(`console: skipped, ${browserMissing}`)

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']
const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

/** Why every page is looked at: policy, errors, and where requests go. */
type Watched = { page: Page; findings: string[]; isShared: boolean; isIdle: boolean }

export type Console = AsyncDisposable & {
  /** Where pages are: with the path of a proxy. */
  url: string
  adminToken: string
  model: FakeModel
  browser: Browser
  proxy: PathProxy | null
  /** Calls the API as the admin, or with this token. */
  call<Answer = Record<string, unknown>>(
    method: string,
    path: string,
    body?: object,
    token?: string,
  ): Promise<Answer>
  createToken(label: string, roles: string[]): Promise<{ id: string; token: string }>
  /** A page of its own, without a session. An error on it fails the test in `checkPages`. */
  open(options?: BrowserContextOptions): Promise<Page>
  /**
   * A page at this path of the console, signed in with the token, the admin's where absent. Without other options it is one
   * that an earlier test has used: its browser context has signed in already, and has loaded the code.
   */
  visit(path: string, options?: BrowserContextOptions & { token?: string }): Promise<Page>
  /** Fails where a page broke the policy, threw, or asked another origin; leaves no page open but one a token. */
  checkPages(): Promise<void>
  restart(): Promise<void>
}

const watch = (page: Page, url: string, isShared: boolean): Watched => {
  const findings: string[] = []
  page.on('pageerror', ({ message }) => findings.push(`error: ${message}`))
  page.on('console', (message) => {
    const text = message.text()
    if (/Content Security Policy|Trusted ?Type|Minified React error/i.test(text)) findings.push(text)
  })
  page.on('request', (request) => {
    if (!/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== new URL(url).origin)
      findings.push(`foreign: ${request.url()}`)
  })
  return { page, findings, isShared, isIdle: false }
}

/** `prefix`: behind a proxy that has it under this path. */
export const openConsole = async ({
  env = {},
  prefix,
}: {
  env?: Record<string, string>
  prefix?: string
} = {}): Promise<Console> => {
  const cwd = await mkdtemp(join(tmpdir(), 'mason-console-'))
  const model = await startFakeModel()
  const proxy = prefix === undefined ? null : await startPathProxy(prefix)
  const adminToken = 'admin-token-of-these-tests-only'
  const start = async (port: string): Promise<{ server: Running; own: string }> => {
    const server = startCli(['serve', '--port', port, ...(env.DATABASE_URL ? ['--migrate'] : [])], {
      cwd,
      // tools of the tests are TypeScript
      ...(env.MASON_TOOLS && { script: 'src/cli.ts' }),
      env: {
        OPENAI_BASE_URL: model.baseUrl,
        OPENAI_API_KEY: 'k',
        OPENAI_MODEL: 'fake',
        MASON_ADMIN_TOKEN: adminToken,
        LOG_LEVEL: 'error',
        ...(proxy && { MASON_PUBLIC_URL: proxy.url }),
        ...env,
      },
    })
    const [own] = await server.says(/http:\/\/127\.0\.0\.1:\d+/)
    return { server, own }
  }
  const [browser, first] = await Promise.all([
    chromium.launch({ executablePath, args: [...flags, ...quiet] }),
    start('0'),
  ])
  let { server } = first
  const { own } = first
  if (proxy) proxy.target = own
  const url = proxy?.url ?? own.replace('127.0.0.1', 'localhost')
  const stop = async (): Promise<void> => {
    server.kill('SIGTERM')
    await server.ended
  }
  const watched: Watched[] = []
  const shared = new Map<string, BrowserContext>()

  const openContext = async (options: BrowserContextOptions): Promise<BrowserContext> => {
    const context = await browser.newContext({ locale: 'en-US', timezoneId: 'UTC', ...options })
    context.setDefaultTimeout(60_000)
    return context
  }
  const openPage = async (context: BrowserContext, isShared: boolean): Promise<Page> => {
    const page = await context.newPage()
    watched.push(watch(page, url, isShared))
    return page
  }

  const it: Console = {
    ...{ url, adminToken, model, browser, proxy },
    async call(method, path, body, token = adminToken) {
      const response = await fetch(own + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
      return text === '' ? null : JSON.parse(text)
    },
    createToken: (label, roles) =>
      it.call('POST', '/admin/v1/tokens', { business_id: 'default', label, roles }),
    open: async (options = {}) => openPage(await openContext(options), false),
    async visit(path, { token = adminToken, ...options } = {}) {
      const isShared = Object.keys(options).length === 0
      const known = isShared ? shared.get(token) : undefined
      const context = known ?? (await openContext(options))
      if (isShared) shared.set(token, context)
      const idle = watched.find(({ page, isIdle }) => isIdle && page.context() === context)
      if (idle) idle.isIdle = false
      const page = idle?.page ?? (await openPage(context, isShared))
      await page.goto(`${url}/console${path}`)
      if (known) await page.locator('main#content').waitFor()
      else await signIn(page, token)
      return page
    },
    async checkPages() {
      const used = watched.splice(0)
      const findings = used.flatMap((one) => one.findings.splice(0))
      const kept = new Set<BrowserContext>()
      for (const one of used) {
        const context = one.page.context()
        if (one.page.isClosed()) continue
        if (!one.isShared) await context.close()
        else if (kept.has(context)) await one.page.close()
        else {
          kept.add(context)
          watched.push(one)
          await one.page.goto('about:blank')
          one.isIdle = true
        }
      }
      expect(findings).toEqual([])
    },
    async restart() {
      await stop()
      ;({ server } = await start(new URL(own).port))
    },
    async [Symbol.asyncDispose]() {
      await browser.close()
      await stop()
      await model.close()
      await proxy?.close()
      await rm(cwd, { recursive: true, force: true })
    },
  }
  return it
}

/** Fills the form; afterwards the page that was asked for is there. */
const signIn = async (page: Page, token: string): Promise<void> => {
  await page.locator('input[name=token]').fill(token)
  await page.locator('form button[type=submit]').click()
  await page.locator('main#content').waitFor()
}

/** Goes to another path of the console as a link does, without loading the page again, and waits for its content. */
export const go = async (page: Page, url: string): Promise<void> => {
  // the page before stays until the code of the next one is there
  const isOther = new URL(url).pathname !== new URL(page.url()).pathname
  await page.evaluate(`document.querySelector('main h1')?.setAttribute('data-old', '');
    history.pushState({}, '', ${JSON.stringify(url)})`)
  await page
    .locator(isOther ? 'main h1:not([data-old])' : 'main > *')
    .first()
    .waitFor()
  await expect.poll(() => page.getByText(/^(Loading|正在加载) ?…$/).count()).toBe(0)
}

/** What axe finds on the page as it is, by rule and place; all of its rules where none are named. */
export const findWithAxe = async (page: Page, runOnly?: readonly string[]): Promise<string[]> => {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  return page.evaluate(`axe.run(document, ${JSON.stringify({ resultTypes: ['violations'], preload: false, ...(runOnly && { runOnly }) })}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ' ' + failureSummary)))`)
}

/** Every action of a short run is there once, in order. */
export const expectWhole = async (page: Page): Promise<void> => {
  const texts = await page.locator('.row-line').allTextContents()
  expect(texts.length).toBeGreaterThan(3)
  expect(texts.map((text) => Number.parseInt(text, 10))).toEqual(texts.map((_, at) => at + 1))
}

/** Keeps a picture for the README where MASON_TEST_SCREENSHOTS is set. */
export const keepPicture = async (page: Page, name: string): Promise<void> => {
  if (!process.env.MASON_TEST_SCREENSHOTS) return
  const folder = join(root, 'docs', 'images')
  await mkdir(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `console-${name}.png`) })
}
