import { secretForms } from './secret-forms.ts'

/**
 * Takes known secrets out of texts, wherever they came from: their exact values, and those as base64, in URLs and in
 * JSON; also the beginning of one where a text was cut off, at its end or before an ellipsis. A text without any of them
 * is passed once and given back as it is. Secrets of under 6 characters stay, for they would be found everywhere.
 */
export type Scrubber = {
  /** May be told of a secret again and again. Never forgets one: what was rotated away may still turn up. */
  add(secret: string): void
  text(text: string): string
}

const leastSecretLength = 6
const scrubbed = '[secret]'

/** Characters hashed to 5 bits each; the last four make a place in the table of 2^20 bits. */
const placeBits = 20
const placeMask = (1 << placeBits) - 1
const placeOf = (place: number, code: number): number => ((place << 5) ^ (code * 0x9e5)) & placeMask

export const createScrubber = (): Scrubber => {
  const known = new Set<string>()
  /** Where the last or the first six characters of a form may be: by the last four of those a bit. */
  const marks = new Uint32Array(1 << (placeBits - 5))
  const byEnd = new Map<string, string[]>()
  const byStart = new Map<string, string[]>()

  const addForm = (form: string): void => {
    const end = form.slice(-leastSecretLength)
    const forms = byEnd.get(end) ?? []
    if (forms.includes(form)) return
    // the longest first: where several end in one place, it covers the others
    byEnd.set(
      end,
      [...forms, form].sort((a, b) => b.length - a.length),
    )
    const start = form.slice(0, leastSecretLength)
    const likes = byStart.get(start)
    if (likes) likes.push(form)
    else byStart.set(start, [form])
    for (const six of [start, end]) {
      let place = 0
      for (let index = 0; index < six.length; index++) place = placeOf(place, six.charCodeAt(index))
      marks[place >>> 5] = (marks[place >>> 5] ?? 0) | (1 << (place & 31))
    }
  }

  /** The span of a form that begins there and is cut off, or null. */
  const cutForm = (text: string, start: number, six: string): [start: number, end: number] | null => {
    const forms = byStart.get(six)
    if (!forms) return null
    const cut = cutAfter(text, start)
    const piece = text.slice(start, cut)
    return forms.some((form) => form.startsWith(piece)) ? [start, cut] : null
  }

  const found = (text: string): [start: number, end: number][] => {
    const spans: [start: number, end: number][] = []
    let place = 0
    for (let index = 0; index < text.length; index++) {
      place = placeOf(place, text.charCodeAt(index))
      if (((marks[place >>> 5] as number) & (1 << (place & 31))) === 0) continue
      const end = index + 1
      const six = text.slice(Math.max(0, end - leastSecretLength), end)
      const form = byEnd.get(six)?.find((one) => end >= one.length && text.startsWith(one, end - one.length))
      if (form !== undefined) cover(spans, [end - form.length, end])
      const cut = cutForm(text, end - leastSecretLength, six)
      if (cut) cover(spans, cut)
    }
    return spans
  }

  return {
    add(secret) {
      if (secret.length < leastSecretLength || known.has(secret)) return
      known.add(secret)
      for (const form of secretForms(secret)) if (form.length >= leastSecretLength) addForm(form)
    },
    text(text) {
      const spans = found(text)
      if (spans.length === 0) return text
      let from = 0
      let clean = ''
      for (const [start, end] of spans) {
        clean += text.slice(from, start) + scrubbed
        from = end
      }
      return clean + text.slice(from)
    },
  }
}

/** Where the text from there on ends: at an ellipsis, or at its end. */
const cutAfter = (text: string, start: number): number => {
  const found = ['…', '...'].map((mark) => text.indexOf(mark, start)).filter((index) => index !== -1)
  return Math.min(text.length, ...found)
}

/** Adds a span that ends where the last one does or later; what overlaps or touches becomes one. */
const cover = (spans: [start: number, end: number][], [from, to]: [start: number, end: number]): void => {
  let [start, end] = [from, to]
  for (let last = spans.at(-1); last && last[1] >= start; last = spans.at(-1)) {
    start = Math.min(start, last[0])
    end = Math.max(end, last[1])
    spans.pop()
  }
  spans.push([start, end])
}
