import { statSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import { createStorageShape, storageRemedies, toFixedRoot } from './storage.ts'

/** Every setting of the environment with its valid values and the remedy for a wrong one. CONTRACT section 2. */

const quoteText = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** A text schema; `findProblem` returns what is wrong with a text, or null. */
const checkedText = (findProblem: (text: string) => string | null) =>
  z.string().superRefine((text, context) => {
    const message = findProblem(text)
    if (message !== null) context.addIssue({ code: 'custom', message })
  })

const wholeNumber = (min: number, max: number) =>
  checkedText((text) =>
    /^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max
      ? null
      : `must be a whole number from ${min} to ${max}, not ${quoteText(text)}`,
  ).transform(Number)

/** Its messages never contain the value, because it may hold a password. */
const address = (protocols: readonly string[], options: { userInfo: boolean }) =>
  checkedText((text) => {
    const rule = `must be an address that begins with ${protocols.map((name) => `${name}//`).join(' or ')}`
    if (!URL.canParse(text)) return `${rule}; it is not an address`
    const url = new URL(text)
    if (!protocols.includes(url.protocol)) return rule
    if (!options.userInfo && (url.username !== '' || url.password !== ''))
      return 'must not contain a user name or password'
    return null
  })

const httpAddress = () => address(['http:', 'https:'], { userInfo: false })

const oneOfWords = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, { error: ({ input }) => `must be ${words.join(', ')}, not ${quoteText(String(input))}` })

/** The value of an HTTP header: visible ASCII only. */
const headerText = () =>
  checkedText((text) =>
    /^[\x21-\x7e]+$/.test(text) ? null : 'has spaces or characters that are invalid in an HTTP header',
  )

/** Null: there is nothing. */
const isFolder = (path: string): boolean | null => {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? null
  } catch {
    // something above it is a file
    return false
  }
}

const is32Bytes = (text: string): boolean =>
  /^[A-Za-z0-9+/]{43}=?$/.test(text) && Buffer.from(text, 'base64').length === 32

const splitList = (text: string): string[] => text.split(',').map((one) => one.trim())

/** 32 bytes in base64. */
export const key32 = () =>
  checkedText((text) => (is32Bytes(text) ? null : 'must be 32 bytes in base64 (44 characters)'))

/** `describe` gets the first that is wrong, and its number: a message never has a secret. */
const listOf = (isValid: (one: string) => boolean, describe: (wrong: string, nth: number) => string) =>
  checkedText((text) => {
    const at = splitList(text).findIndex((one) => !isValid(one))
    return at === -1
      ? null
      : `must be comma-separated ${describe(quoteText(splitList(text)[at] ?? ''), at + 1)}`
  })
    .transform(splitList)
    .default([])

/** Such keys, separated by commas. */
export const listOfKeys32 = () =>
  listOf(is32Bytes, (_, nth) => `keys of 32 bytes in base64; key ${nth} is not`)

const folderList = () =>
  listOf(
    (one) => isFolder(one) === true,
    (wrong) => `folders; ${wrong} is none`,
  ).transform((paths) => paths.map((path) => resolve(path)))

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

/** The path under which a proxy has Mason; its first part is none of Mason's own, or the two would be one. */
const publicPath = /^(\/(?!(v1|admin|console|docs)(\/|$))[\w.~-]*[\w~-])(\/[\w.~-]*[\w~-])*$/

/** Passkeys belong to a host name, and browsers have none without https but on this machine. */
const isPublicUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, origin, pathname } = new URL(text)
  if (text !== origin && (text !== origin + pathname || !publicPath.test(pathname))) return false
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) return false
  return protocol === 'https:' || (protocol === 'http:' && /^(.+\.)?localhost$/.test(hostname))
}

const network = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])
const isNetwork = (text: string): boolean => network.safeParse(text).success

/** As many characters as 16 random bytes have in hex. */
const minQueueSecret = 32

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** Megabytes of request bodies in flight that a process holds, and that the requests of one token may. */
export const defaultBodyMemoryMb = { process: 128, token: 64 }
/** The address of a database server. */
export const databaseAddress = () => address(['postgres:', 'postgresql:'], { userInfo: true })

/** All settings with their defaults; parses the texts of the environment. */
export const settingsSchema = z.object({
  DATABASE_URL: databaseAddress().optional(),
  MASON_API_DATABASE_URL: databaseAddress().optional(),
  MASON_WORKER_DATABASE_URL: databaseAddress().optional(),
  MASON_MIGRATE_URL: databaseAddress().optional(),
  REDIS_URL: address(['redis:', 'rediss:'], { userInfo: true }).optional(),
  MASON_QUEUE_PREFIX: checkedText((text) =>
    /^[\w.{}-]{1,64}$/.test(text)
      ? null
      : `must be 1 to 64 letters, digits and . _ - { }, not ${quoteText(text)}`,
  ).default('bull'),
  DATA_DIR: checkedText((text) => (isFolder(text) === false ? `${quoteText(text)} is not a folder` : null))
    .default('.mason')
    .transform((path) => resolve(path)),
  PORT: wholeNumber(0, 65_535).default(8080),
  HOST: checkedText((text) =>
    /[\s/]/.test(text) ? `must be a host name or an IP address, not ${quoteText(text)}` : null,
  ).default('127.0.0.1'),
  MASON_METRICS_PORT: wholeNumber(0, 65_535).optional(),
  MASON_MASTER_KEY: key32().optional(),
  MASON_PREVIOUS_MASTER_KEYS: listOfKeys32(),
  MASON_ADMIN_TOKEN: headerText().optional(),
  MASON_AUTH: oneOfWords(['required', 'off']).default('required'),
  MASON_METRICS: oneOfWords(['open', 'admin', 'off']).default('open'),
  MASON_DOCS: oneOfWords(['open', 'off']).default('open'),
  MASON_CONSOLE: oneOfWords(['open', 'off']).default('open'),
  MASON_CORS_ORIGINS: listOf(
    (one) => one === '*' || isOrigin(one),
    (wrong) => `origins such as https://app.example.com, or *; ${wrong} is none`,
  ),
  MASON_PUBLIC_URL: checkedText((text) =>
    isPublicUrl(text)
      ? null
      : `must be an address with a host name: https, or http on localhost, without "/" at its end, and with a path only where a proxy has Mason under one (not /v1, /admin, /console or /docs); not ${quoteText(text)}`,
  ).optional(),
  MASON_TRUSTED_PROXIES: listOf(
    isNetwork,
    (wrong) => `IP addresses or networks such as 10.0.0.0/8; ${wrong} is none`,
  ),
  MASON_QUEUE_SECRET: checkedText((text) =>
    text.length >= minQueueSecret && !text.includes(',')
      ? null
      : `must be at least ${minQueueSecret} characters without a comma`,
  ).optional(),
  MASON_PREVIOUS_QUEUE_SECRETS: listOf(
    (one) => one.length >= minQueueSecret,
    (_, nth) => `secrets of at least ${minQueueSecret} characters; secret ${nth} is shorter`,
  ),
  OPENAI_API_KEY: headerText().optional(),
  OPENAI_BASE_URL: httpAddress().optional(),
  OPENAI_MODEL: z.string().default('gpt-4.1-mini'),
  OPENAI_EMBEDDING_MODEL: z.string().default('text-embedding-3-small'),
  MASON_OFFLINE_DIALECT: oneOfWords(['tools', 'xml']).default('tools'),
  MASON_LEARNING: oneOfWords(['on', 'off']).default('on'),
  MASON_RECALL: oneOfWords(['on', 'off']).default('on'),
  MASON_RECALL_BACKLOG_TOKENS: wholeNumber(0, 1_000_000_000).default(200_000),
  MASON_LEASE_MS: wholeNumber(100, 3_600_000).default(30_000),
  MASON_FILES_ROOT: checkedText((text) =>
    isFolder(toFixedRoot(text)) === true ? null : `${quoteText(toFixedRoot(text))} is not a readable folder`,
  )
    .transform((path) => resolve(path))
    .optional(),
  ...createStorageShape(httpAddress().optional(), headerText().optional()),
  MASON_KEEP_BLOBS_DAYS: wholeNumber(1, 36_500).default(7),
  MASON_KEEP_REJECTED_JOBS_DAYS: wholeNumber(1, 36_500).default(30),
  // a body has 32 MB at most, and one must fit
  MASON_BODY_MEMORY_MB: wholeNumber(32, 1_000_000).default(defaultBodyMemoryMb.process),
  MASON_TOKEN_BODY_MEMORY_MB: wholeNumber(32, 1_000_000).default(defaultBodyMemoryMb.token),
  MASON_MAX_WAIT_MS: wholeNumber(0, 600_000).default(2_000),
  MASON_QUOTA_STORAGE_MB: wholeNumber(1, 1_000_000_000).default(20_480),
  MASON_QUOTA_QUEUED_RUNS: wholeNumber(1, 1_000_000_000).default(10_000),
  MASON_QUOTA_REQUESTS_PER_MINUTE: wholeNumber(1, 1_000_000_000).optional(),
  WORKER_CONCURRENCY: wholeNumber(1, 1000).default(8),
  WORKER_MAX_RUNS: wholeNumber(1, 10_000).default(256),
  LOG_LEVEL: oneOfWords(logLevels).default('info'),
  MASON_TOOLS: folderList(),
  MASON_FEATURES: folderList(),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpAddress().optional(),
  MASON_URL: httpAddress().optional(),
  MASON_TOKEN: headerText().optional(),
})

/** The parsed settings by name. */
export type Settings = z.infer<typeof settingsSchema>
/** The name of a setting, which is its environment variable. */
export type SettingName = keyof Settings
/** The names of all settings. */
export const settingNames = Object.keys(settingsSchema.shape) as SettingName[]

/** The shell command that creates a master key. */
export const masterKeyCommand = `node -p "crypto.randomBytes(32).toString('base64')"`
/** The shell command that creates an admin token. */
export const adminTokenCommand = `node -p "crypto.randomBytes(24).toString('hex')"`

/** What to do about a wrong value of each setting, in the imperative. */
export const settingRemedies: Record<SettingName, string> = {
  DATABASE_URL:
    'set it, for example to postgres://user:password@127.0.0.1:5432/mason; %-escape special characters in the password',
  MASON_API_DATABASE_URL:
    'set it to a login of its own, for example postgres://mason_http:password@127.0.0.1:5432/mason; `mason migrate` creates it',
  MASON_WORKER_DATABASE_URL:
    'set it to a login of its own, for example postgres://mason_runs:password@127.0.0.1:5432/mason; `mason migrate` creates it',
  MASON_MIGRATE_URL:
    'set it to the user that owns the tables and may create roles, for example postgres://mason:password@127.0.0.1:5432/mason; only `mason migrate` needs it',
  REDIS_URL: 'set it, for example to redis://127.0.0.1:6379',
  MASON_QUEUE_PREFIX:
    'remove it for the default, bull; two Masons on one Redis need different ones, such as mason-a',
  DATA_DIR: 'name a separate folder for the embedded database; Mason creates it',
  PORT: 'set a free port such as 8080, or 0 for any free one',
  HOST: 'set 127.0.0.1 for this machine only, or 0.0.0.0 for every network it is in',
  MASON_METRICS_PORT:
    'set a free port such as 9464, another one for each process on this machine, or remove it',
  MASON_MASTER_KEY: `create one and keep it safe: ${masterKeyCommand}`,
  MASON_PREVIOUS_MASTER_KEYS: 'copy the earlier values of MASON_MASTER_KEY again, separated by commas',
  MASON_ADMIN_TOKEN: `create one: ${adminTokenCommand}`,
  MASON_AUTH: 'remove it, so that every call needs a token',
  MASON_METRICS: 'set admin to ask for the admin token at /metrics, or off for no /metrics',
  MASON_DOCS: 'set off for no /docs and no /openapi.json, or remove it',
  MASON_CONSOLE: 'set off for no /console, or remove it',
  MASON_CORS_ORIGINS: 'list scheme, host and port of the pages that may call, without a path',
  MASON_PUBLIC_URL:
    'set the address under which users open pages of this server, for example https://mason.example.com or http://localhost:8080',
  MASON_TRUSTED_PROXIES:
    'list the addresses of the proxies in front of this server, for example 10.0.0.0/8, or remove it where clients reach it directly',
  MASON_QUEUE_SECRET: `create one, and set it for workers and producers: ${adminTokenCommand}`,
  MASON_PREVIOUS_QUEUE_SECRETS: 'copy the earlier values of MASON_QUEUE_SECRET again, separated by commas',
  OPENAI_API_KEY: 'copy the key again, without quotes, spaces or line ends',
  OPENAI_BASE_URL: 'end it with /v1, for example https://api.openai.com/v1; put the key into OPENAI_API_KEY',
  OPENAI_MODEL: "set the name of one of the server's models",
  OPENAI_EMBEDDING_MODEL: "set the name of one of the server's embedding models",
  MASON_LEARNING:
    'set off where `mason memory-worker` learns from runs in processes of its own, or remove it',
  MASON_RECALL: 'set off to store and recall no turns of earlier sessions, or remove it',
  MASON_RECALL_BACKLOG_TOKENS:
    'remove it for the default: an hour and a business embeds 200000 tokens of turns that ended before recall was on',
  MASON_OFFLINE_DIALECT: 'set xml to have the offline model write its calls as text, or remove it',
  MASON_LEASE_MS: 'remove it for the default, 30000 (half a minute)',
  MASON_FILES_ROOT:
    'create the folder, or remove the setting to switch "local" mappings off; write {business} where the id of the business belongs, so that each has its own folder',
  ...storageRemedies,
  MASON_KEEP_BLOBS_DAYS: 'remove it for the default: files that no session holds are kept for 7 days',
  MASON_KEEP_REJECTED_JOBS_DAYS:
    'remove it for the default: rejected queue jobs and unreadable model responses are kept for 30 days',
  MASON_BODY_MEMORY_MB:
    'remove it for the default: request bodies in flight take at most 128 MB of a process',
  MASON_TOKEN_BODY_MEMORY_MB:
    'remove it for the default: those of one token take at most 64 MB, and never more than is free besides',
  MASON_MAX_WAIT_MS:
    'remove it for the default: a call of the OpenAI-compatible endpoint waits at most 2000 ms for a limit to open',
  MASON_QUOTA_STORAGE_MB: 'remove it for the default: a business may store 20480 MB (20 GB)',
  MASON_QUOTA_QUEUED_RUNS: 'remove it for the default: 10000 runs of a business may wait for a worker',
  MASON_QUOTA_REQUESTS_PER_MINUTE:
    'remove it for no limit; set a number for every business without a quota of its own',
  WORKER_CONCURRENCY:
    'set how many runs may work at once in one worker, for example 8; those that wait for a model do not count',
  WORKER_MAX_RUNS:
    'remove it for the default: a worker has 256 runs at once, at work and waiting for models and slow tools',
  MASON_TOOLS: 'list folders with *.tool.ts and *.node.ts files, or name them in mason.config.ts',
  MASON_FEATURES: 'list the folders of features, or name them in mason.config.ts',
  LOG_LEVEL: 'remove it for the default, info',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'set it, for example to http://127.0.0.1:4318',
  MASON_URL: 'set it, for example to http://127.0.0.1:8080',
  MASON_TOKEN: 'copy the token again, without quotes, spaces or line ends',
}
