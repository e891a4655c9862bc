/** What must never be remembered: credentials and numbers that open something, told by their shape or by their name. */

const named =
  /(?<![a-z])(?:pass(?:word|code|phrase)?|pwd|pin(?: code)?|secret(?:[ _-](?:access[ _-])?key)?|token|(?:api|access|private|licen[cs]e)[ _-]?key|(?:security|verification|confirmation|one[ -]time|otp|auth\w*|unlock|door|gate|alarm|entry|access|backup|recovery) codes?|cvv|cvc|(?:recovery|seed|backup|mnemonic) (?:phrase|words|key)|credentials?)(?![a-z])(?!\s+(?:policy|policies|manager|rules?|rotation|requirements?|protected))/i
const value = /(?:\b(?:is|are|was)\b|[:=]|\bset to\b)\s*["']?\S{3,}/i
/** A word with a digit or a sign in its middle, as passwords have. */
const oddWord = /\bpass(?:word|code)?\s+(?=\S*[\d!@#$%^&*+=_])\S{4,}/i
/** Papers and accounts: secret once their number stands there. */
const numbered =
  /\b(?:passport|driv(?:er'?s?|ing) licen[cs]e|national id|id card|identity card|social security|tax(?:payer)? id|(?:bank )?account|(?:credit|debit) card)(?: (?:number|no\.?))?(?: (?:is|was))?\s*[:=#]?\s*(?=[A-Z0-9-]*\d)[A-Z0-9-]{5,}/i
const namedHan =
  /(?:密码|口令|密钥|秘钥|验证码|助记词|(?:身份证|护照|驾照|驾驶证|社保卡?|银行卡|账户|账)号码?|安全码|令牌|暗号|PIN码?|api\s*key)\s*(?:是|为|叫|：|:|=)?\s*["“]?[A-Za-z0-9][\w#@!$%^&*.-]{2,}/i

/** A code that is only figures, unless it says where somebody lives or calls from. */
const opens =
  /(?<!\b(?:zip|post|postal|area|country|dialling|dialing|status|error|cost|product|project) )\bcode\s*(?:is|[:=])\s*\d{3,}/i

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
    numbered.test(plain) ||
    opens.test(plain) ||
    (named.test(plain) && value.test(plain.slice(plain.search(named))))
  )
}
