/** How a secret may look in a text: as it is, in JSON (also JSON in JSON), in URLs and forms, as base64. */
export const secretForms = (secret: string): Set<string> => {
  const inJson = escaped(secret)
  const inUrl = encoded(secret)
  return new Set([
    secret,
    inJson,
    escaped(inJson),
    inUrl,
    lowerCaseEscapes(inUrl),
    new URLSearchParams([['', secret]]).toString().slice(1),
    ...inBase64(secret),
  ])
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Lone surrogates have no form in a URL. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed())

const lowerCaseEscapes = (text: string): string => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())

/**
 * Alone, and in the middle of anything (such as `user:secret`): what stands before it may shift it by 0, 1 or 2 bytes,
 * so the characters at its ends, which it shares with its neighbours, are left out there.
 */
const inBase64 = (secret: string): string[] => {
  const bytes = Buffer.from(secret)
  const alone = bytes.toString('base64').replace(/=+$/, '')
  const shifted = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    const first = Math.ceil((shift * 8) / 6)
    return text.slice(first, Math.floor(((shift + bytes.length) * 8) / 6))
  })
  return [alone, ...shifted].flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')])
}
