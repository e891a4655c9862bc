import { isIP } from 'node:net'
import { addressFault, kindOfAddress } from './addresses.ts'

type Options = { allowPrivate: boolean }

const schemeAndHost = /^(https?):\/\/([^/?#\\]*)/i
const isLocalName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost')

/** Without the brackets of IPv6. */
const bareHost = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/** The URL, when it is http or https and its host is written the one plain way; else what is wrong with it. */
const readPlainUrl = (text: string): URL | string => {
  // the URL parser drops line ends and tabs without a word, so that a host would read otherwise than it was checked
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u0020\u007f]/.test(text)) return 'has spaces or control characters'
  const written = schemeAndHost.exec(text)
  if (written === null || !URL.canParse(text)) return 'is not an http or https address'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || written[2]?.includes('@'))
    return 'holds a user name or a password; put the key into a key of the vendor'
  const port = written[2]?.endsWith(`:${url.protocol === 'https:' ? 443 : 80}`)
    ? written[2].replace(/:\d+$/, '')
    : written[2]
  if (port?.toLowerCase() !== url.host || url.hostname.endsWith('.'))
    return `spells its host in an unusual way; write "${url.host.replace(/\.(?=:|$)/, '')}"`
  return url
}

/** An address to call, or what is wrong with it as far as its text alone tells; names are looked up when it is called. */
export const checkedUrl = (text: string, { allowPrivate }: Options): URL | { detail: string } => {
  const url = readPlainUrl(text)
  if (typeof url === 'string') return { detail: url }
  const host = bareHost(url)
  if (isLocalName(host) && !allowPrivate)
    return { detail: `${host} is this machine; allow_private is not set` }
  const fault = isIP(host) === 0 ? null : addressFault(host, allowPrivate)
  if (fault === null) return url
  const remedy = kindOfAddress(host) === 'private' ? '; allow_private is not set' : ''
  return { detail: fault + remedy }
}

/** What is wrong with an address to call, or null. */
export const addressFaults = (text: string, options: Options): { detail: string } | null => {
  const checked = checkedUrl(text, options)
  return checked instanceof URL ? null : checked
}

/** Whether a URL plainly names this machine or a private address, so that its admin has said so by writing it. */
export const plainlyPrivate = (text: string): boolean => {
  const url = readPlainUrl(text)
  if (typeof url === 'string') return false
  const host = bareHost(url)
  return isLocalName(host) || (isIP(host) !== 0 && kindOfAddress(host) === 'private')
}
