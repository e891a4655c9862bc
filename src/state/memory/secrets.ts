/** What must never be remembered: credentials and numbers that open something, told by their shape or by their name. */

const named =
  /\b(?:pass(?:word|code|phrase)?|pwd|pin(?: code)?|secret(?: key)?|token|(?:api|access|private|licen[cs]e)[ _-]?key|security code|cvv|cvc|credentials?)\b(?!\s+(?:policy|policies|manager|rules?|rotation|requirements?|protected))/i
const value = /(?:\b(?:is|are|was)\b|[:=]|\bset to\b)\s*["']?\S{3,}/i
/** A word with a digit or a sign in its middle, as passwords have. */
const oddWord = /\bpass(?:word|code)?\s+(?=\S*[\d!@#$%^&*+=_])\S{4,}/i
const namedHan =
  /(?:密码|口令|密钥|秘钥|验证码|安全码|令牌|暗号|PIN码?|api\s*key)\s*(?:是|为|叫|：|:|=)?\s*["“]?[A-Za-z0-9][\w#@!$%^&*.-]{2,}/i

const shapes: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{16,}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bgh[pousr]_[A-Za-z0-9]{30,}/,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/,
  /\bbearer\s+[A-Za-z0-9._~+/-]{16,}/i,
  /-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)/,
  /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:[^\s/@]+@/i,
  /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,}\b/,
  /\b\d{3}-\d{2}-\d{4}\b/,
  /(?<!\d)\d{17}[\dXx](?!\d)/,
  /(?<!\d)(?:\d[ -]?){13,19}(?!\d)/,
  /\b(?=[a-f]*\d)[0-9a-f]{32,}\b/i,
]

/** Whether a text holds something secret. Rather once too often: what is refused here is only not remembered. */
export const holdsSecret = (text: string): boolean => {
  const plain = text.normalize('NFKC')
  return (
    shapes.some((shape) => shape.test(plain)) ||
    oddWord.test(plain) ||
    namedHan.test(plain) ||
    (named.test(plain) && value.test(plain.slice(plain.search(named))))
  )
}
