import type { RejectionReason } from '../../state/ports/memories.ts'
import { extractWords, normalizeText } from '../../state/text/words.ts'
import { isAboutThirdParty } from './third-party-facts.ts'

const commands =
  /\b(?:ignore|disregard|forget) (?:all |any )?(?:the |your )?(?:previous|prior|above|earlier)\b|\bsystem prompt\b|忽略(?:之前|以上|所有)|系统提示词/i

const smallTalk: readonly RegExp[] = [
  /^(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|night)|bye|goodbye|see (?:you|ya)|brb|cheers|welcome)\b.{0,40}$/,
  /^(?:ok|okay|yes|yeah|yep|haha+|lol|wow|h+m+|u+h+|um+|a+h+|oh|ugh|phew|oops|sounds? good|got it|i see|all good)\b.{0,40}$/,
  /^(?:no|sure|right|fine|great|cool|perfect|nice)(?:$|[,!. ]+(?:$|(?:one|job|work|stuff|point|idea|thing|enough|problem|worries|rush|need|then|now|that|this|it|i|you|we|let|go|so|thanks?)\b).{0,40}$)/,
  /\b(?:thanks|thank you|thanked|appreciate|you are (?:very |so )?(?:helpful|great|welcome)|well done|good job)\b/,
  /\buser (?:has )?(?:greeted|greets|thanks|complimented|praised|congratulated|apologi[sz]ed|apologi[sz]es|laughed|joked|agreed|confirmed|acknowledged|wished (?:the assistant|it|you|him|her))\b/,
  /^you(?:'re|'ve| are(?! to\b)| have| were| did| really| just)\b/,
  /\b(?:said|says) (?:hello|hi|goodbye|bye|thanks)\b|\bhave a (?:nice|good|great)\b/,
  /^(?:please )?(?:can you |could you )?help me(?: with (?:this|that|it))?$|^(?:i am|i'm) (?:glad|happy|sorry|pleased) (?:we|that|to|about)\b/,
  /^(?:你好|您好|嗨|哈喽|早上好|上午好|下午好|晚上好|晚安|再见|拜拜|辛苦|好的|好吧|嗯|行|可以|明白|知道了|哈哈|在吗|没问题|收到|哦)/,
  /谢谢|感谢|多谢|表示感谢|周末愉快|祝你|祝您|打招呼|太好了|真棒|辛苦了|^(?:厉害|牛|太棒|不错|真不错|学到了)/,
]

const momentary: readonly RegExp[] = [
  /\b(?:right now|just now|at the moment|at present|for now|today|tonight|tomorrow|yesterday|this (?:morning|afternoon|evening|week)|in (?:a|five|ten|\d+) (?:minutes?|hours?|moment)|be (?:right )?back|by \d+ ?(?:am|pm))\b/,
  /\b(?:(?:tired|bored)(?! of\b)|hungry|thirsty|sleepy|exhausted|impatient|headache|battery (?:is|at|low)|in a (?:hurry|rush))\b/,
  /\b(?:am|i'm|is|feel|feels|feeling|so|very|too|quite|still) (?:busy|sick(?! of\b)|(?:in|on) (?:a|the) (?:meeting|train|bus|call|plane)|at the (?:airport|station)|about to)\b/,
  /(?<!\b(?:easily|often|always|gets|get) )\b(?:frustrated|annoyed|upset|stressed|confused)\b(?! (?:by|when|if)\b)/,
  /\b(?:raining|snowing)\b|下[大小暴]?[雨雪]/,
  /^(?:(?:i|the user|user) )?(?:have |has )?just (?:opened|closed|uploaded|downloaded|sent|pasted|attached|clicked|finished|woke|ate|arrived)\b/,
  /(?:^|\b(?:am|i'm|is|are) )(?:just |still )?(?:waiting|uploading|downloading|attaching|pasting|typing|(?:having|eating|cooking|making) (?:a |some )?(?:breakfast|lunch|dinner|coffee|tea|break|drink|rest|nap))\b/,
  /现在(?:有点|很|正|在开|不方便)|今天|今晚|昨天|明天|刚才|刚刚|这会儿|等会|一会儿|待会|马上|此刻|心情|正在(?:开会|吃|等|路上|忙)/,
]
/** A request of the moment; one for every time is a preference. */
const requests: readonly RegExp[] = [
  /\buser (?:asked|asks|wants (?:a|an|the|to know|to see|me)|would like (?:a|the|to know)|requested|requests|is (?:looking for|asking|requesting)|needs (?:a|the|this|to know)|inquired)\b/,
  /\bi (?:need|want) (?:this|that|it)\b/,
  /^(?:translate|summari[sz]e|fix|make|create|draw|shorten|rewrite|check|explain|convert|show|open|delete|add|remove) .*\b(?:this|that|it|these|those|above|attached|uploaded)\b/,
  /用户(?:想要|想知道|想了解|询问|问|要求|请求|需要|[让叫请](?:助手|你|AI|模型|机器人))|帮我|^(?:麻烦|劳驾|能不能|能否|可不可以)/i,
]
const standingWords =
  /\b(?:always|never|every|each|whenever|by default|in general|from now on)\b|以后|今后|每[次个份篇天周月]|一律|总是|所有|默认/
const currentlyWords = /\bcurrently\b|目前/
const lastingWords =
  /\b(?:learn|learning|study|studying|train|training|work|works|working|live|lives|living|moved|prefer|prefers|use|uses|using)\b|学习|住|工作|搬|喜欢|偏好|备考|准备考/

/** Credentials and secret numbers, recognized by their shape or by their name. */
const namedSecret =
  /(?<![a-z])(?:pass(?:word|code|phrase)?|pwd|pin(?: code)?|secret(?:[ _-](?:access[ _-])?key)?|token|(?:api|access|private|licen[cs]e)[ _-]?key|(?:security|verification|confirmation|one[ -]time|otp|auth\w*|unlock|door|gate|alarm|entry|access|backup|recovery) codes?|cvv|cvc|(?:recovery|seed|backup|mnemonic) (?:phrase|words|key)|credentials?)(?![a-z])(?!\s+(?:policy|policies|manager|rules?|rotation|requirements?|protected))/i
const value = /(?:\b(?:is|are|was)\b|[:=]|\bset to\b)\s*["']?\S{3,}/i
/** A password written as a word with a digit or a sign in it. */
const oddWord = /\bpass(?:word|code)?\s+(?=\S*[\d!@#$%^&*+=_])\S{4,}/i
/** Identity papers and accounts with their number. */
const numbered =
  /\b(?:passport|driv(?:er'?s?|ing) licen[cs]e|national id|id card|identity card|social security|tax(?:payer)? id|(?:bank )?account|(?:credit|debit) card)(?: (?:number|no\.?))?(?: (?:is|was))?\s*[:=#]?\s*(?=[A-Z0-9-]*\d)[A-Z0-9-]{5,}/i
const namedHan =
  /(?:密码|口令|密钥|秘钥|验证码|助记词|(?:身份证|护照|驾照|驾驶证|社保卡?|银行卡|账户|账)号码?|安全码|令牌|暗号|PIN码?|api\s*key)\s*(?:是|为|叫|：|:|=)?\s*["“]?[A-Za-z0-9][\w#@!$%^&*.-]{2,}/i

/** A code of digits, except one of a place, a phone, a status or an account of costs. */
const accessCode =
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

/** Whether a text has a credential or a secret number. A false alarm only means that it is not remembered. */
const holdsSecret = (text: string): boolean => {
  const plain = text.normalize('NFKC')
  return (
    shapes.some((shape) => shape.test(plain)) ||
    oddWord.test(plain) ||
    namedHan.test(plain) ||
    numbered.test(plain) ||
    accessCode.test(plain) ||
    (namedSecret.test(plain) && value.test(plain.slice(plain.search(namedSecret))))
  )
}

/** Why a statement is not worth keeping, by rules for English and Chinese; null where it is. */
export const findRejectionReason = (content: string): RejectionReason | null => {
  if (holdsSecret(content)) return 'secret'
  const text = normalizeText(content).replace(/[.!?。！？~～]+$/u, '')
  if (commands.test(text)) return 'command'
  if (smallTalk.some((pattern) => pattern.test(text))) return 'small talk'
  if (extractWords(text).length === 0) return 'empty'
  if (/[?？]\s*$/u.test(content)) return 'small talk'
  if (isAboutThirdParty(text)) return 'others'
  if (requests.some((pattern) => pattern.test(text)) && !standingWords.test(text)) return 'passing'
  if (
    momentary.some((pattern) => pattern.test(text)) ||
    (currentlyWords.test(text) && !lastingWords.test(text))
  )
    return 'passing'
  return null
}
