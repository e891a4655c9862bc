import type { Scrubber } from './scrubber.ts'

/** What of a request to a vendor, or of its answer, may be kept or shown: what is named here, and nothing else. */

const redacted = '[redacted]'

/** Of both directions, in small letters. None of them carries a credential in any vendor's API that we know of. */
const shownHeaderNames = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'anthropic-beta',
  'anthropic-version',
  'cache-control',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'http-referer',
  'openai-beta',
  'openai-processing-ms',
  'openai-version',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'server',
  'transfer-encoding',
  'user-agent',
  'x-mason-role',
  'x-request-id',
  'x-title',
])

/** Of names that end in a number or a span: `x-ratelimit-remaining-tokens` and the like. */
const shownHeaderFamilies = ['x-ratelimit-', 'anthropic-ratelimit-', 'x-stainless-'] as const

export const isShownHeader = (name: string): boolean => {
  const small = name.toLowerCase()
  return shownHeaderNames.has(small) || shownHeaderFamilies.some((family) => small.startsWith(family))
}

/** All names, but only the values that may be seen, and those without known secrets. */
export const shownHeaders = (
  headers: Iterable<readonly [string, string]>,
  scrubber: Pick<Scrubber, 'text'>,
): Record<string, string> =>
  Object.fromEntries(
    [...headers].map(([name, value]) => [name, isShownHeader(name) ? scrubber.text(value) : redacted]),
  )

/** Where a request went: no user and password, no fragment, of the query only the names. */
export const shownUrl = (url: string, scrubber: Pick<Scrubber, 'text'>): string => {
  if (!URL.canParse(url)) return redacted
  const { origin, pathname, searchParams } = new URL(url)
  const names = [...searchParams.keys()].map((name) => `${encodeURIComponent(name)}=${redacted}`)
  return scrubber.text(`${origin}${pathname}${names.length > 0 ? `?${names.join('&')}` : ''}`)
}

const scheme = /^(bearer|basic|token|key|apikey|api-key) +/i

/** What an endpoint's own headers hold that must show nowhere: neither a scheme nor `{{key}}`, which stands for one. */
export const secretsInHeaders = (headers: Readonly<Record<string, string>>): string[] =>
  Object.entries(headers)
    .filter(([name]) => !isShownHeader(name))
    .flatMap(([, value]) => value.replace(scheme, '').split(/\{\{.*?\}\}/))
    .map((part) => part.trim())
    .filter((part) => part !== '')
