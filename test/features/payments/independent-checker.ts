import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'

/**
 * A second verifier of AP2 0.2 mandates, for comparison. It is written from the text of AP2 (agent_authorization.md,
 * payment_mandate.md, checkout_mandate.md), RFC 7515, RFC 9901 and docs/payments.md, with node:crypto alone, and imports nothing of
 * `src`: an error that both have is one of the specification. It stops at the first error and explains nothing.
 */

// biome-ignore lint/suspicious/noExplicitAny: JSON of every shape
type Json = any

/** A line of `mason ap2 verify`. */
export type CheckedLine = {
  kind: 'payment' | 'checkout'
  token: string
  trust: { keys: Json[] }
  audience: string
  nonce: string
  now: number
  checkout_hash?: string
  transaction_id?: string
  open_checkout_hash?: string
  spent?: { amount_minor: number; uses: number; last_used_at?: number }
}
export type CheckerVerdict = { ok: boolean; stage: 'crypto' | 'constraints'; why: string }

class Refusal extends Error {}
const must = (condition: unknown, why: string): void => {
  if (!condition) throw new Refusal(why)
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')
const isRecord = (value: Json): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: Json): boolean => typeof value === 'string' && value.length > 0

const fromBase64 = (text: string): Buffer => {
  must(/^[A-Za-z0-9_-]+$/.test(text) && text.length % 4 !== 1, 'not base64url')
  return Buffer.from(text, 'base64url')
}
const readJson = (text: string): Json => {
  try {
    return JSON.parse(fromBase64(text).toString('utf8'))
  } catch {
    throw new Refusal('no JSON in base64url')
  }
}

/** RFC 7515, of ES256 alone (RFC 7518, 3.4). Headers that bring a key, or change the rules, are refused. */
const readSigned = (jwt: string) => {
  const [head = '', body = '', mac = '', more] = jwt.split('.')
  must(more === undefined && mac !== '', 'not three parts')
  const [header, payload] = [readJson(head), readJson(body)]
  must(isRecord(header) && isRecord(payload), 'no objects')
  must(header.alg === 'ES256', 'not ES256')
  must(!['jku', 'x5u', 'x5c', 'jwk', 'crit'].some((name) => name in header), 'a header with a key')
  const signature = fromBase64(mac)
  must(signature.length === 64, 'not r and s')
  return { header, payload, input: `${head}.${body}`, signature }
}
type Signed = ReturnType<typeof readSigned>

/** Reading a key takes as long as a signature. */
const keys = new Map<string, KeyObject>()

const isSignedBy = (jwk: Json, { input, signature }: Signed): boolean => {
  must(jwk?.kty === 'EC' && jwk.crv === 'P-256' && isText(jwk.x) && isText(jwk.y), 'no key on P-256')
  const name = `${jwk.x} ${jwk.y}`
  let key = keys.get(name)
  if (!key) {
    try {
      key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: jwk.x, y: jwk.y }, format: 'jwk' })
    } catch {
      return false
    }
    keys.set(name, key)
  }
  return verify('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }, signature)
}
const isSignedByTrusted = (signed: Signed, trusted: Json[]): boolean =>
  trusted.some((jwk) => jwk.kid === signed.header.kid && isSignedBy(jwk, signed))

/** An entry of a list whose disclosure was not sent, and a mark of objects that have claims whose disclosures were not sent. */
const absent = Symbol('not disclosed')
const partial = Symbol('has claims that are not disclosed')

/** RFC 9901, 7.1: each digest once, each disclosure used once, no claim twice. */
const disclose = (payload: Json, disclosures: string[]): Json => {
  must(payload._sd_alg === undefined || payload._sd_alg === 'sha-256', 'another digest')
  const byDigest = new Map<string, Json[]>()
  for (const text of disclosures) {
    const parts = readJson(text)
    must(
      Array.isArray(parts) && typeof parts[0] === 'string' && [2, 3].includes(parts.length),
      'no disclosure',
    )
    must(!byDigest.has(digestOf(text)), 'a disclosure twice')
    byDigest.set(digestOf(text), parts)
  }
  const seen = new Set<string>()
  const used = new Set<string>()
  const look = (digest: Json, length: number): Json[] | undefined => {
    must(typeof digest === 'string' && !seen.has(digest), 'a digest twice')
    seen.add(digest)
    const parts = byDigest.get(digest)
    if (parts) used.add(digest)
    must(!parts || parts.length === length, 'a disclosure of the other kind')
    return parts
  }
  const walk = (value: Json): Json => {
    if (Array.isArray(value))
      return value.map((item) => {
        if (!isRecord(item) || Object.keys(item).join() !== '...') return walk(item)
        const parts = look(item['...'], 2)
        return parts ? walk(parts[1]) : absent
      })
    if (!isRecord(value)) return value
    const { _sd, _sd_alg, ...plain } = value
    const result: Json = Object.fromEntries(Object.entries(plain).map(([name, one]) => [name, walk(one)]))
    must(_sd === undefined || Array.isArray(_sd), '_sd is no list')
    for (const digest of _sd ?? []) {
      const parts = look(digest, 3)
      if (!parts) result[partial] = true
      else {
        const [, name, one] = parts
        must(isText(name) && name !== '_sd' && name !== '...' && !(name in result), 'a claim twice')
        result[name] = walk(one)
      }
    }
    return result
  }
  const whole = walk(payload)
  must(used.size === byDigest.size, 'a disclosure of nothing')
  return whole
}

const skew = 300
const checkTimes = (claims: Json, now: number): void => {
  for (const name of ['iat', 'nbf', 'exp']) {
    const time = claims[name]
    if (time === undefined) continue
    must(typeof time === 'number', 'no time')
    must(name === 'exp' ? now <= time + skew : time <= now + skew, name)
  }
}

/** A credential whose key a user signs mandates with (agent_authorization.md, "User Credential"): no mandate, so it limits nothing. */
const isCredentialOfUser = ({ vct, constraints }: Json): boolean =>
  isText(vct) && !vct.toLowerCase().startsWith('mandate') && constraints === undefined

/** The mandates of a chain, the closed one last, when every hop is signed, bound, addressed, in time and of its type. */
const checkCrypto = (line: CheckedLine): { mandates: Json[]; checkout: Json } => {
  const { kind, token, now, trust } = line
  must(Buffer.byteLength(token) <= 256 * 1024, 'too long')
  const texts = token.split('~~').map((text, i, all) => (i < all.length - 1 ? `${text}~` : text))
  must(token.split('~').length <= 200 + 2 * texts.length, 'too many disclosures')
  const mandates: Json[] = []
  texts.forEach((text, i) => {
    const isLast = i === texts.length - 1
    const [jwt = '', ...rest] = text.split('~')
    must(rest.pop() === '', 'no "~" at the end')
    const signed = readSigned(jwt)
    const claims = disclose(signed.payload, rest)
    if (i === 0) must(isSignedByTrusted(signed, trust.keys), 'signature of the root')
    else {
      must(isSignedBy(mandates[i - 1].cnf?.jwk, signed), 'signature by cnf')
      const [base, suffix] = [String(signed.header.typ), isLast ? '' : '+kb']
      must([`kb+sd-jwt${suffix}`, `kb-sd-jwt${suffix}`].includes(base), 'typ')
      const { sd_hash, issuer_jwt_hash } = signed.payload
      const before = texts[i - 1] ?? ''
      must((sd_hash === undefined) !== (issuer_jwt_hash === undefined), 'one binding')
      if (sd_hash !== undefined) must(sd_hash === digestOf(before), 'sd_hash')
      else must(issuer_jwt_hash === digestOf(before.split('~')[0] ?? ''), 'issuer_jwt_hash')
      must(signed.payload.iat !== undefined, 'iat')
    }
    if (i > 0 || isLast)
      for (const [name, expected] of [
        ['aud', line.audience],
        ['nonce', line.nonce],
      ] as const) {
        must(isText(signed.payload[name]), `no ${name}`)
        if (isLast) must(signed.payload[name] === expected, name)
      }
    const items = i === 0 && !('delegate_payload' in claims) ? [claims] : claims.delegate_payload
    must(Array.isArray(items) && items.length === 1 && isRecord(items[0]), 'one mandate')
    const [mandate] = items
    checkTimes(claims, now)
    checkTimes(mandate, now)
    const isCredential = i === 0 && !isLast && mandate === claims && isCredentialOfUser(mandate)
    if (!isCredential) must(mandate.vct === (isLast ? `mandate.${kind}.1` : `mandate.${kind}.open.1`), 'vct')
    if (i > 0 && isLast) must(!('cnf' in mandate), 'cnf in a closed mandate')
    mandates.push(mandate)
  })
  const closed = mandates.at(-1)
  if (kind === 'payment') return { mandates, checkout: null }
  must(isText(closed.checkout_jwt), 'checkout_jwt')
  must(closed.checkout_hash === digestOf(closed.checkout_jwt), 'checkout_hash')
  const checkout = readSigned(closed.checkout_jwt)
  must(isSignedByTrusted(checkout, trust.keys), 'signature of the merchant')
  checkTimes(checkout.payload, now)
  return { mandates, checkout: checkout.payload }
}

/** Minor units of a currency (ISO 4217), of those that the tests use. */
const exponents: Record<string, number> = { USD: 2, EUR: 2, JPY: 0, KWD: 3 }
const checkMinor = (amount: Json, currency: Json): void => {
  must(Object.hasOwn(exponents, String(currency)), 'no currency')
  must(Number.isSafeInteger(amount) && amount >= 0, 'no amount in minor units')
}
const toMinor = (major: Json, currency: string): bigint => {
  must(Object.hasOwn(exponents, String(currency)), 'no currency')
  must(typeof major === 'number', 'no amount')
  const [whole = '', fraction = ''] = String(major).split('.')
  must(/^\d+$/.test(whole) && /^\d*$/.test(fraction), 'no decimal')
  must(fraction.length <= (exponents[currency] ?? 0), 'too many decimals')
  const minor = BigInt(whole + fraction.padEnd(exponents[currency] ?? 0, '0'))
  must(minor < 2n ** 53n, 'too large')
  return minor
}

const listOf = (value: Json): Json[] => {
  must(Array.isArray(value), 'no list')
  return value.filter((entry: Json) => entry !== absent && entry?.[partial] !== true)
}
const isSameMerchant = (one: Json, other: Json): boolean =>
  one.id && other.id
    ? one.id === other.id
    : isText(one.name) && isText(one.website) && one.name === other.name && one.website === other.website

/** Null and absent are the same (AP2.md 1.5, row 11). */
const plain = (value: Json): string =>
  JSON.stringify(value, (_, one) =>
    isRecord(one)
      ? Object.fromEntries(
          Object.keys(one)
            .filter((name) => one[name] !== null)
            .sort()
            .map((name) => [name, one[name]]),
        )
      : one,
  )

const claimsOfTokens = [
  'vct',
  'constraints',
  'cnf',
  'iss',
  'sub',
  'aud',
  'nonce',
  'iat',
  'nbf',
  'exp',
  'jti',
  'status',
  'sd_hash',
  'issuer_jwt_hash',
]
const checkPresets = (open: Json, closed: Json): void => {
  for (const name of Object.keys(open))
    if (!claimsOfTokens.includes(name) && open[name] !== null)
      must(plain(open[name]) === plain(closed[name] ?? null), `preset ${name}`)
}

/** Whether a claim of it is not disclosed, other than of an entry of what is allowed. */
const isPartial = (value: Json): boolean => {
  if (Array.isArray(value)) return value.some(isPartial)
  if (!isRecord(value)) return false
  return (
    value[partial] === true ||
    Object.keys(value).some(
      (name) => !['allowed', 'acceptable_items'].includes(name) && isPartial(value[name]),
    )
  )
}

/** From when on it may be used again: the same day (UTC) a period later, at midnight; where the month has none, its last day. */
const nextUse = (last: number, frequency: string): number => {
  const date = new Date(last * 1000)
  date.setUTCHours(0, 0, 0, 0)
  const days = { DAILY: 1, WEEKLY: 7, BIWEEKLY: 14 }[frequency]
  if (days) date.setUTCDate(date.getUTCDate() + days)
  else {
    const months = { MONTHLY: 1, QUARTERLY: 3, ANNUALLY: 12 }[frequency] ?? Number.NaN
    const day = date.getUTCDate()
    date.setUTCMonth(date.getUTCMonth() + months)
    if (date.getUTCDate() !== day) date.setUTCDate(0)
  }
  return date.getTime() / 1000
}

/** The first and last second of a date, or a time with an offset, by its text (ISO 8601). */
const spanOf = (text: Json): [number, number] => {
  const [, year, month, day, time] =
    /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(String(text)) ?? []
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  must(Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= days, 'no date')
  const first = Date.parse(text) / 1000
  must(!Number.isNaN(first), 'no time')
  return [first, time === undefined ? first + 86_400 - 0.001 : first]
}

const checkPayment = (opens: Json[], closed: Json, line: CheckedLine): void => {
  const { now, spent } = line
  const { payee, payment_amount: paid, payment_instrument: instrument, pisp, transaction_id } = closed
  must(isText(transaction_id), 'transaction_id')
  must(isRecord(payee) && isText(payee.id) && isText(payee.name), 'payee')
  must(isRecord(instrument) && isText(instrument.id) && isText(instrument.type), 'payment_instrument')
  must(isRecord(paid), 'payment_amount')
  checkMinor(paid.amount, paid.currency)
  const names = ['legal_name', 'brand_name', 'domain_name']
  if (pisp != null) must(isRecord(pisp) && names.every((name) => isText(pisp[name])), 'pisp')
  if (closed.execution_date != null) must(isText(closed.execution_date), 'execution_date')
  if (line.transaction_id !== undefined) must(transaction_id === line.transaction_id, 'transaction_id')
  for (const open of opens) {
    must(Array.isArray(open.constraints), 'constraints')
    const types = open.constraints.map((one: Json) => one?.type)
    must(types.includes('payment.reference'), 'no reference')
    const isRecurring = types.includes('payment.agent_recurrence')
    if (isRecurring)
      must(
        types.includes('payment.amount_range') && types.includes('payment.budget'),
        'a recurrence without limits',
      )
    if (spent && spent.uses > 0) must(isRecurring || types.includes('payment.budget'), 'used already')
    must(!isPartial(open), 'a claim is not disclosed')
    checkPresets(open, closed)
    for (const one of open.constraints) {
      must(isRecord(one), 'a constraint is not disclosed')
      const check: Record<string, () => void> = {
        'payment.amount_range'() {
          checkMinor(one.max, one.currency)
          if (one.min != null) checkMinor(one.min, one.currency)
          must(paid.currency === one.currency, 'currency')
          must(paid.amount <= one.max && paid.amount >= (one.min ?? 0), 'amount')
        },
        'payment.allowed_payees': () =>
          must(
            listOf(one.allowed).some((entry) => isSameMerchant(entry, payee)),
            'payee',
          ),
        'payment.allowed_payment_instruments': () =>
          must(
            listOf(one.allowed).some((entry) => entry.id === instrument.id),
            'instrument',
          ),
        'payment.allowed_pisps': () =>
          must(
            pisp && listOf(one.allowed).some((entry) => names.every((name) => entry[name] === pisp[name])),
            'pisp',
          ),
        'payment.reference': () =>
          must(
            isText(one.conditional_transaction_id) &&
              one.conditional_transaction_id === line.open_checkout_hash,
            'reference',
          ),
        'payment.budget'() {
          const max = toMinor(one.max, one.currency)
          must(paid.currency === one.currency && spent, 'budget')
          must(BigInt(spent?.amount_minor ?? 0) + BigInt(paid.amount) <= max, 'budget')
        },
        'payment.agent_recurrence'() {
          const known = ['ON_DEMAND', 'DAILY', 'WEEKLY', 'BIWEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUALLY']
          must(spent && known.includes(one.frequency), 'recurrence')
          const uses = spent?.uses ?? 0
          if (one.max_occurrences != null) must(uses < one.max_occurrences, 'occurrences')
          if (uses === 0 || one.frequency === 'ON_DEMAND') return
          must(spent?.last_used_at !== undefined, 'last_used_at')
          must(now >= nextUse(spent?.last_used_at ?? 0, one.frequency), 'too early')
        },
        'payment.execution_date'() {
          const [from, to] = closed.execution_date == null ? [now, now] : spanOf(closed.execution_date)
          if (one.not_before != null) must(from >= spanOf(one.not_before)[0], 'not_before')
          if (one.not_after != null) must(to <= spanOf(one.not_after)[1], 'not_after')
        },
      }
      must(Object.hasOwn(check, String(one.type)), 'an unknown constraint')
      check[one.type]?.()
    }
  }
}

/** Whether every unit of the cart has a unit of a requirement that accepts it: bipartite matching, unit by unit. */
const fits = (cart: string[], slots: Set<string>[]): boolean => {
  const holder = new Map<number, number>()
  const seat = (unit: number, tried: Set<number>): boolean =>
    slots.some((accepted, slot) => {
      if (tried.has(slot) || !accepted.has(cart[unit] ?? '')) return false
      tried.add(slot)
      const other = holder.get(slot)
      if (other !== undefined && !seat(other, tried)) return false
      holder.set(slot, unit)
      return true
    })
  return cart.every((_, unit) => seat(unit, new Set()))
}

const checkCheckout = (opens: Json[], closed: Json, checkout: Json, line: CheckedLine): void => {
  if (line.checkout_hash !== undefined) must(closed.checkout_hash === line.checkout_hash, 'checkout_hash')
  const { merchant, line_items: lines } = checkout
  must(Array.isArray(lines), 'line_items')
  for (const one of lines)
    must(isText(one?.item?.id) && Number.isSafeInteger(one.quantity) && one.quantity >= 0, 'line_items')
  const cart = lines.flatMap(({ item, quantity }: Json) => Array(quantity).fill(item.id))
  for (const open of opens) {
    must(Array.isArray(open.constraints), 'constraints')
    must(
      open.constraints.some((one: Json) => one?.type === 'checkout.line_items'),
      'no line_items',
    )
    must(!isPartial(open), 'a claim is not disclosed')
    checkPresets(open, closed)
    for (const one of open.constraints) {
      must(isRecord(one), 'a constraint is not disclosed')
      if (one.type === 'checkout.allowed_merchants')
        must(merchant && listOf(one.allowed).some((entry) => isSameMerchant(entry, merchant)), 'merchant')
      else {
        must(
          one.type === 'checkout.line_items' && Array.isArray(one.items) && one.items.length > 0,
          'unknown',
        )
        const slots = one.items.flatMap((need: Json) => {
          must(
            isRecord(need) && isText(need.id) && Number.isSafeInteger(need.quantity) && need.quantity > 0,
            'items',
          )
          const ids = new Set(listOf(need.acceptable_items).map((entry) => entry.id as string))
          return Array(need.quantity).fill(ids)
        })
        must(cart.length > 0 && fits(cart, slots), 'line items')
      }
    }
  }
}

/** The verdict on a line. Who signed what comes first; what it allows is looked at when that is certain. */
export const checkIndependently = (line: CheckedLine): CheckerVerdict => {
  let stage: CheckerVerdict['stage'] = 'crypto'
  try {
    const { mandates, checkout } = checkCrypto(line)
    stage = 'constraints'
    const closed = mandates.at(-1)
    const opens = mandates.slice(0, -1).filter((mandate) => !isCredentialOfUser(mandate))
    if (line.kind === 'payment') checkPayment(opens, closed, line)
    else checkCheckout(opens, closed, checkout, line)
    return { ok: true, stage, why: '' }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ok: false, stage, why: error.message }
  }
}
