import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { fixedRoot } from './files-root.ts'
import { storageRemedies, storageShape } from './storage.ts'

/** Every setting as it stands in the environment: what it may be, and what to do when it is not. CONTRACT section 2. */

const quoted = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** A check of the text that says itself what is wrong; null when all is well. */
const checked = (fault: (text: string) => string | null) =>
  z.string().superRefine((text, context) => {
    const message = fault(text)
    if (message !== null) context.addIssue({ code: 'custom', message })
  })

const wholeNumber = (least: number, most: number) =>
  checked((text) =>
    /^\d{1,15}$/.test(text) && Number(text) >= least && Number(text) <= most
      ? null
      : `must be a whole number from ${least} to ${most}, not ${quoted(text)}`,
  ).transform(Number)

/** The value is never shown: it may hold a password. */
const address = (protocols: readonly string[], options: { userInfo: boolean }) =>
  checked((text) => {
    const wanted = `must be an address that begins with ${protocols.map((name) => `${name}//`).join(' or ')}`
    if (!URL.canParse(text)) return `${wanted}; it is no address at all`
    const url = new URL(text)
    if (!protocols.includes(url.protocol)) return wanted
    if (!options.userInfo && (url.username !== '' || url.password !== ''))
      return 'must not hold a user name or password'
    return null
  })

const httpAddress = () => address(['http:', 'https:'], { userInfo: false })

const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, { error: ({ input }) => `must be ${words.join(', ')}, not ${quoted(String(input))}` })

/** Goes into an HTTP header, so only visible ASCII. */
const headerText = () =>
  checked((text) =>
    /^[\x21-\x7e]+$/.test(text) ? null : 'has spaces or characters that no HTTP header can carry',
  )

const isFolder = (path: string): boolean | null =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? null

const is32Bytes = (text: string): boolean =>
  /^[A-Za-z0-9+/]{43}=?$/.test(text) && Buffer.from(text, 'base64').length === 32

const keyOf32Bytes = () =>
  checked((text) => (is32Bytes(text) ? null : 'must be 32 bytes in base64 (44 characters)'))

const keysOf32Bytes = () =>
  checked((text) => {
    const wrong = listed(text).findIndex((one) => !is32Bytes(one))
    return wrong === -1
      ? null
      : `must be keys of 32 bytes in base64 with commas between; number ${wrong + 1} is none`
  }).transform(listed)

const listed = (text: string): string[] => text.split(',').map((one) => one.trim())

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export const settingsSchema = z.object({
  DATABASE_URL: address(['postgres:', 'postgresql:'], { userInfo: true }).optional(),
  REDIS_URL: address(['redis:', 'rediss:'], { userInfo: true }).optional(),
  DATA_DIR: checked((text) => (isFolder(text) === false ? `${quoted(text)} is no folder` : null))
    .default('.mason')
    .transform((path) => resolve(path)),
  PORT: wholeNumber(0, 65_535).default(8080),
  HOST: checked((text) =>
    /[\s/]/.test(text) ? `must be a host name or an IP address, not ${quoted(text)}` : null,
  ).default('127.0.0.1'),
  MASON_MASTER_KEY: keyOf32Bytes().optional(),
  MASON_PREVIOUS_MASTER_KEYS: keysOf32Bytes().default([]),
  MASON_ADMIN_TOKEN: headerText().optional(),
  MASON_AUTH: oneOf(['required', 'off']).default('required'),
  OPENAI_API_KEY: headerText().optional(),
  OPENAI_BASE_URL: httpAddress().optional(),
  OPENAI_MODEL: z.string().default('gpt-4.1-mini'),
  OPENAI_EMBEDDING_MODEL: z.string().default('text-embedding-3-small'),
  MASON_LEASE_MS: wholeNumber(100, 3_600_000).default(30_000),
  MASON_FILES_ROOT: checked((text) =>
    isFolder(fixedRoot(text)) === true ? null : `${quoted(fixedRoot(text))} is no folder that can be read`,
  )
    .transform((path) => resolve(path))
    .optional(),
  ...storageShape(httpAddress().optional(), headerText().optional()),
  MASON_KEEP_BLOBS_DAYS: wholeNumber(1, 36_500).default(7),
  MASON_KEEP_REJECTED_JOBS_DAYS: wholeNumber(1, 36_500).default(30),
  WORKER_CONCURRENCY: wholeNumber(1, 1000).default(8),
  LOG_LEVEL: oneOf(logLevels).default('info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpAddress().optional(),
  MASON_URL: httpAddress().optional(),
  MASON_TOKEN: headerText().optional(),
})

export type Settings = z.infer<typeof settingsSchema>
export type SettingName = keyof Settings
export const settingNames = Object.keys(settingsSchema.shape) as SettingName[]

export const makeMasterKey = `node -p "crypto.randomBytes(32).toString('base64')"`
export const makeAdminToken = `node -p "crypto.randomBytes(24).toString('hex')"`

export const remedies: Record<SettingName, string> = {
  DATABASE_URL:
    'for example postgres://user:password@127.0.0.1:5432/mason; %-escape odd characters in the password',
  REDIS_URL: 'for example redis://127.0.0.1:6379',
  DATA_DIR: 'name a folder of its own for the embedded database; it is made when it is not there',
  PORT: 'set a free port such as 8080, or 0 for any free one',
  HOST: 'set 127.0.0.1 for this machine only, or 0.0.0.0 for all that can reach it',
  MASON_MASTER_KEY: `make one and keep it: ${makeMasterKey}`,
  MASON_PREVIOUS_MASTER_KEYS: 'copy the earlier values of MASON_MASTER_KEY again, with commas between',
  MASON_ADMIN_TOKEN: `make one: ${makeAdminToken}`,
  MASON_AUTH: 'leave it out, so that every call needs a token',
  OPENAI_API_KEY: 'copy the key again, without quotes, spaces or line ends',
  OPENAI_BASE_URL:
    'set it up to and with /v1, for example https://api.openai.com/v1; the key goes into OPENAI_API_KEY',
  OPENAI_MODEL: "set the name of one of the server's models",
  OPENAI_EMBEDDING_MODEL: "set the name of one of the server's embedding models",
  MASON_LEASE_MS: 'leave it out for 30000 (half a minute)',
  MASON_FILES_ROOT:
    'make the folder, or leave the setting out: then no "local" mapping can be read; {business} in it stands for the id of the business, so that each has its own',
  ...storageRemedies,
  MASON_KEEP_BLOBS_DAYS: 'leave it out for 7: how long bytes are kept that no session holds',
  MASON_KEEP_REJECTED_JOBS_DAYS:
    'leave it out for 30: how long refused queue jobs, and answers of models that could not be read, are kept',
  WORKER_CONCURRENCY: 'set how many runs one worker may have at once, for example 8',
  LOG_LEVEL: 'leave it out for info',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'for example http://127.0.0.1:4318',
  MASON_URL: 'for example http://127.0.0.1:8080',
  MASON_TOKEN: 'copy the token again, without quotes, spaces or line ends',
}
