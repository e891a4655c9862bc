/**
 * Removes known secrets from texts: their exact values, their forms in base64, URLs and JSON, and the beginning of one
 * where a text was cut, at its end or before an ellipsis. A text without secrets is scanned once and returned unchanged.
 * Secrets of less than 6 characters are ignored, because they would match everywhere.
 */
export type Scrubber = ReturnType<typeof createScrubber>

const minSecretLength = 6
const replacement = '[secret]'

/** A rolling hash of 5 bits per character; the last four characters give an index into a table of 2^20 bits. */
const tableBits = 20
const tableMask = (1 << tableBits) - 1
const hashNext = (hash: number, code: number): number => ((hash << 5) ^ (code * 0x9e5)) & tableMask

/** A scrubber that knows no secrets yet. */
export const createScrubber = () => {
  const known = new Set<string>()
  /** One bit for the hash of the last four of the first or last six characters of each form. */
  const marks = new Uint32Array(1 << (tableBits - 5))
  const byEnd = new Map<string, string[]>()
  const byStart = new Map<string, string[]>()
  let longest = 0

  const addForm = (form: string): void => {
    const end = form.slice(-minSecretLength)
    const forms = byEnd.get(end) ?? []
    if (forms.includes(form)) return
    // a longer form covers shorter ones that end at the same index
    const longestFirst = [...forms, form].sort((a, b) => b.length - a.length)
    byEnd.set(end, longestFirst)
    longest = Math.max(longest, form.length)
    const start = form.slice(0, minSecretLength)
    const sameStart = byStart.get(start)
    if (sameStart) sameStart.push(form)
    else byStart.set(start, [form])
    for (const six of [start, end]) {
      let hash = 0
      for (let index = 0; index < six.length; index++) hash = hashNext(hash, six.charCodeAt(index))
      marks[hash >>> 5] = (marks[hash >>> 5] ?? 0) | (1 << (hash & 31))
    }
  }

  /** The span of a form that begins at `start` and is cut, or null. Looks no further than the longest form: a text may have many starts. */
  const cutForm = (text: string, start: number, six: string): [start: number, end: number] | null => {
    const forms = byStart.get(six)
    if (!forms) return null
    const near = text.slice(start, start + longest + ellipses[0].length)
    const prefix = near.slice(0, findTextEnd(near))
    return forms.some((form) => form.startsWith(prefix)) ? [start, start + prefix.length] : null
  }

  const findSpans = (text: string): [start: number, end: number][] => {
    const spans: [start: number, end: number][] = []
    let hash = 0
    for (let index = 0; index < text.length; index++) {
      hash = hashNext(hash, text.charCodeAt(index))
      if (((marks[hash >>> 5] as number) & (1 << (hash & 31))) === 0) continue
      const end = index + 1
      const six = text.slice(Math.max(0, end - minSecretLength), end)
      const form = byEnd.get(six)?.find((one) => end >= one.length && text.startsWith(one, end - one.length))
      if (form !== undefined) addSpan(spans, [end - form.length, end])
      const cut = cutForm(text, end - minSecretLength, six)
      if (cut) addSpan(spans, cut)
    }
    return spans
  }

  return {
    /** Adds a secret, which may be known already. It is never forgotten, because a rotated secret may still appear. */
    add(secret: string): void {
      if (secret.length < minSecretLength || known.has(secret)) return
      known.add(secret)
      for (const form of listSecretForms(secret)) if (form.length >= minSecretLength) addForm(form)
    },
    text(text: string): string {
      const spans = findSpans(text)
      if (spans.length === 0) return text
      let from = 0
      let clean = ''
      for (const [start, end] of spans) {
        clean += text.slice(from, start) + replacement
        from = end
      }
      return clean + text.slice(from)
    },
  }
}

const ellipses = ['...', '…'] as const

/** Where a text ends: at an ellipsis, or at its end. */
const findTextEnd = (text: string): number =>
  Math.min(text.length, ...ellipses.map((mark) => text.indexOf(mark)).filter((index) => index !== -1))

/** Adds a span that ends at or after the last one, and joins spans that overlap or touch. */
const addSpan = (spans: [start: number, end: number][], [from, to]: [start: number, end: number]): void => {
  let [start, end] = [from, to]
  for (let last = spans.at(-1); last && last[1] >= start; last = spans.at(-1)) {
    start = Math.min(start, last[0])
    end = Math.max(end, last[1])
    spans.pop()
  }
  spans.push([start, end])
}

/** The forms of a secret in a text: plain, in JSON (also nested), in URLs and HTML forms, and in base64. */
const listSecretForms = (secret: string): Set<string> => {
  const inJson = escapeJson(secret)
  // half a surrogate pair has no form in a URL
  const inUrl = encodeURIComponent(secret.toWellFormed())
  return new Set([
    secret,
    inJson,
    escapeJson(inJson),
    inUrl,
    inUrl.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    new URLSearchParams([['', secret]]).toString().slice(1),
    ...listBase64Forms(secret),
  ])
}

const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/**
 * Encoded alone, and as part of a longer text (such as `user:secret`), which may shift it by 0, 1 or 2 bytes. The shifted
 * forms leave out the characters at the ends, which depend on the neighboring bytes.
 */
const listBase64Forms = (secret: string): string[] => {
  const bytes = Buffer.from(secret)
  const alone = bytes.toString('base64').replace(/(?<!=)=+$/, '')
  const shifted = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    const first = Math.ceil((shift * 8) / 6)
    return text.slice(first, Math.floor(((shift + bytes.length) * 8) / 6))
  })
  return [alone, ...shifted].flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')])
}
