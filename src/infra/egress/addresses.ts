import { BlockList, isIP } from 'node:net'

/**
 * The kind of an IP address. `private`: this machine or its network, reached only where an admin allows it. `special`:
 * link-local and cloud metadata, multicast, documentation, tunnels and the like, never reached, even if an admin allows it.
 */
export type AddressKind = 'public' | 'private' | 'special'

/** Of ranges in one text or several. */
const createBlockList = (family: 'ipv4' | 'ipv6', ...ranges: string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges.flatMap((some) => some.split(' '))) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), family)
  }
  return list
}

/** Loopback and RFC 1918. */
const privateV4 = createBlockList('ipv4', '127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16')

/** https://www.iana.org/assignments/iana-ipv4-special-registry, multicast, and Azure's metadata address. */
const specialV4 = createBlockList(
  'ipv4',
  '0.0.0.0/8 100.64.0.0/10 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24',
  '192.52.193.0/24 192.88.99.0/24 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24',
  '224.0.0.0/4 240.0.0.0/4 168.63.129.16/32',
)

/** Loopback and unique local (RFC 4193). */
const privateV6 = createBlockList('ipv6', '::1/128', 'fc00::/7')

/** Metadata of AWS and Google, inside the unique local range. */
const metadataV6 = createBlockList('ipv6', 'fd00:ec2::254/128', 'fd20:ce::254/128')

/** The range for public use; every other address is special. */
const globalV6 = createBlockList('ipv6', '2000::/3')

/** https://www.iana.org/assignments/iana-ipv6-special-registry, as far as inside 2000::/3; Teredo is in 2001::/23. */
const specialV6 = createBlockList('ipv6', '2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20')

const classifyV4 = (address: string): AddressKind => {
  if (privateV4.check(address, 'ipv4')) return 'private'
  return specialV4.check(address, 'ipv4') ? 'special' : 'public'
}

const nat64Prefix = '64:ff9b::'

/** The IPv4 address inside one of 64:ff9b::/96 (RFC 6052), which networks without IPv4 make for public servers. */
const readNat64Address = (canonical: string): string | null => {
  if (!canonical.startsWith(nat64Prefix)) return null
  const groups = canonical.slice(nat64Prefix.length).split(':')
  if (groups.length > 2 || groups.includes('')) return null
  const [low = 0, high = 0] = groups.map((group) => Number.parseInt(group, 16)).reverse()
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

const classifyV6 = (address: string): AddressKind => {
  const v4 = readNat64Address(new URL(`http://[${address}]`).hostname.slice(1, -1))
  if (v4 !== null) return classifyV4(v4) === 'public' ? 'public' : 'special'
  // before the lists: node matches a v4-mapped address against lists of IPv4
  if (!globalV6.check(address, 'ipv6')) {
    return privateV6.check(address, 'ipv6') && !metadataV6.check(address, 'ipv6') ? 'private' : 'special'
  }
  return specialV6.check(address, 'ipv6') ? 'special' : 'public'
}

/** The kind of an address. A text that is not an address, or one with a zone (`fe80::1%eth0`), is `special`. */
export const classifyAddress = (address: string): AddressKind => {
  const family = address.includes('%') ? 0 : isIP(address)
  if (family === 4) return classifyV4(address)
  return family === 6 ? classifyV6(address) : 'special'
}

/** Why an address must not be reached, or null. */
export const checkAddress = (address: string, allowPrivate: boolean): string | null => {
  const kind = classifyAddress(address)
  if (kind === 'public' || (kind === 'private' && allowPrivate)) return null
  return kind === 'private'
    ? `${address} is an address of this machine or of a private network`
    : `${address} is reserved for special purposes (link-local, metadata, multicast, documentation and the like)`
}
