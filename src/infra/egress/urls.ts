import { isIP } from 'node:net'
import type { FieldError } from '../../state/resource-schema.ts'
import { checkAddress, classifyAddress } from './addresses.ts'

type UrlCheckOptions = { allowPrivate: boolean }

const schemeAndHost = /^(https?):\/\/([^/?#\\]*)/i
const isLocalName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost')

/** Without the brackets of IPv6. */
const toBareHost = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/** The URL, when it is http or https and its host has the canonical spelling; else what is wrong with it. */
const readPlainUrl = (text: string): URL | string => {
  // the URL parser silently drops line ends and tabs, so the parsed host would differ from the checked one
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are searched for
  if (/[\u0000-\u0020\u007f]/.test(text)) return 'has spaces or control characters'
  const written = schemeAndHost.exec(text)
  if (written === null || !URL.canParse(text)) return 'is not an http or https address'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || written[2]?.includes('@'))
    return 'contains a user name or a password; leave them out, and store the secret in a field for secrets'
  const port = written[2]?.endsWith(`:${url.protocol === 'https:' ? 443 : 80}`)
    ? written[2].replace(/:\d+$/, '')
    : written[2]
  if (port?.toLowerCase() !== url.host || url.hostname.endsWith('.'))
    return `spells its host in an unusual way; write "${url.host.replace(/\.(?=:|$)/, '')}"`
  return url
}

/** The URL of an address, or what is wrong with its text; names are resolved later, when it is called. */
export const parseCheckedUrl = (text: string, { allowPrivate }: UrlCheckOptions): URL | string => {
  const url = readPlainUrl(text)
  if (typeof url === 'string') return url
  const host = toBareHost(url)
  if (isLocalName(host) && !allowPrivate) return `${host} is this machine; allow_private is not set`
  const problem = isIP(host) === 0 ? null : checkAddress(host, allowPrivate)
  if (problem === null) return url
  return classifyAddress(host) === 'private' ? `${problem}; allow_private is not set` : problem
}

/** What is wrong with the text of an address, or null. */
export const checkUrl = (text: string, options: UrlCheckOptions): { detail: string } | null => {
  const checked = parseCheckedUrl(text, options)
  return typeof checked === 'string' ? { detail: checked } : null
}

/** What is wrong with `base_url`, to whose end paths are added. */
export const findBaseUrlErrors = (base_url: string, allowPrivate: boolean): FieldError[] => {
  const problem =
    checkUrl(base_url, { allowPrivate })?.detail ??
    (/[?#]/.test(base_url) ? 'has a query or a fragment; paths are added to its end' : null)
  return problem === null ? [] : [{ pointer: '/base_url', detail: problem }]
}

/** Whether a URL literally names this machine or a private address, so that the admin who wrote it meant that. */
export const isPlainlyPrivate = (text: string): boolean => {
  const url = readPlainUrl(text)
  if (typeof url === 'string') return false
  const host = toBareHost(url)
  return isLocalName(host) || (isIP(host) !== 0 && classifyAddress(host) === 'private')
}
