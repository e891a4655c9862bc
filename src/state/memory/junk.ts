import { holdsSecret } from './secrets.ts'
import { normalise, wordsOf } from './words.ts'

/** Why a statement is not worth keeping, whatever is known already. Rules for English and Chinese. */
export type Junk = 'empty' | 'secret' | 'command' | 'small talk' | 'others' | 'passing'

const han = /\p{Script=Han}/u

const commands =
  /\b(?:ignore|disregard|forget) (?:all |any )?(?:the |your )?(?:previous|prior|above|earlier)\b|\bsystem prompt\b|忽略(?:之前|以上|所有)|系统提示词/i

const talk: readonly RegExp[] = [
  /^(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|night)|bye|goodbye|see you|cheers|welcome)\b.{0,40}$/,
  /^(?:ok|okay|yes|no|sure|right|fine|great|cool|perfect|haha+|lol|wow|nice|sounds? good|got it|i see|all good)\b.{0,40}$/,
  /\b(?:thanks|thank you|thanked|appreciate|you are (?:very |so )?(?:helpful|great|welcome)|well done|good job)\b/,
  /\b(?:said|says) (?:hello|hi|goodbye|bye|thanks)\b|\bhave a (?:nice|good|great)\b/,
  /^(?:please )?(?:can you |could you )?help me(?: with (?:this|that|it))?$|^(?:i am|i'm) (?:glad|happy|sorry|pleased) (?:we|that|to|about)\b/,
  /^(?:你好|您好|嗨|哈喽|早上好|上午好|下午好|晚上好|晚安|再见|拜拜|辛苦|好的|好吧|嗯|行|可以|明白|知道了|哈哈|在吗)/,
  /谢谢|感谢|多谢|表示感谢|周末愉快|祝你|祝您|打招呼|太好了|真棒|辛苦了/,
]

const people =
  '(?:(?:ex|step|grand)-?)?(?:wife|husband|partner|spouse|fianc\\w+|girlfriend|boyfriend|mother|mum|mom|father|dad|parents?|son|daughter|child|children|kids?|brother|sister|siblings?|grand(?:mother|father|ma|pa|son|daughter)|uncle|aunt|cousin|nephew|niece|friends?|boss|manager|colleagues?|coworkers?|co-workers?|neighbou?rs?|customers?|clients?|supplier|teacher|doctor|landlord|roommate|flatmate|assistant)'
const peopleHan =
  '(?:妈妈|母亲|爸爸|父亲|父母|老婆|妻子|老公|丈夫|爱人|女朋友|男朋友|儿子|女儿|孩子|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|外公|外婆|叔叔|阿姨|朋友|同事|老板|领导|经理|邻居|客户|同学|老师|室友)'

const ofOthers: readonly RegExp[] = [
  new RegExp(`^(?:my|our|the user's|user's) (?:\\w+ )?${people}\\b`),
  new RegExp(`^(?:我|我的|我们|我们的|咱们?|用户|用户的)${peopleHan}`),
  /^(?:he|she|they|his|her|their)\b/,
  /^(?:他|她|他们|她们)/,
]
/** Words by which a statement speaks of its user, or tells us how to work for him. */
const ofUser =
  /\b(?:i|i'm|i've|i'd|i'll|me|my|mine|we|our|us|user|user's|users)\b|^(?:please|always|never|don't|do not|from now on|use|prefers?|likes?|dislikes?|wants?|avoid|answer|reply|write|call|lives?|works?|speaks?|has|is|was)\b/
const ofUserHan = /我|用户|咱|^(?:请|以后|今后|从现在起|总是|不要|别|尽量|务必|偏好|喜欢|住在|叫)|回答|回复/

const brief: readonly RegExp[] = [
  /\b(?:right now|just now|at the moment|at present|for now|today|tonight|tomorrow|yesterday|this (?:morning|afternoon|evening|week)|in (?:a|five|ten|\d+) (?:minutes?|hours?|moment)|be (?:right )?back|by \d+ ?(?:am|pm))\b/,
  /\b(?:tired|hungry|thirsty|sleepy|busy|headache|battery|(?:in|on) (?:a|the) (?:meeting|train|bus|call|plane))\b/,
  /\buser (?:asked|asks|wants (?:a|an|the|to know|to see|me)|would like (?:a|the|to know)|requested|requests|is (?:looking for|asking|requesting)|needs (?:a|the|this|to know)|inquired)\b/,
  /\bi (?:need|want) (?:this|that|it)\b/,
  /现在(?:有点|很|正|在开|不方便)|今天|今晚|昨天|明天|刚才|刚刚|这会儿|等会|一会儿|待会|马上|此刻|心情|正在(?:开会|吃|等|路上|忙)|用户(?:想要|想知道|想了解|询问|问|要求|请求|需要)|帮我/,
]
const passing = /\bcurrently\b|目前/
const lasting =
  /\b(?:learn|learning|study|studying|train|training|work|works|working|live|lives|living|moved|prefer|prefers|use|uses|using)\b|学习|住|工作|搬|喜欢|偏好|备考|准备考/

export const junkOf = (content: string): Junk | null => {
  if (holdsSecret(content)) return 'secret'
  const text = normalise(content).replace(/[.!?。！？~～]+$/u, '')
  if (commands.test(text)) return 'command'
  if (talk.some((pattern) => pattern.test(text))) return 'small talk'
  if (wordsOf(text).length === 0) return 'empty'
  if (ofOthers.some((pattern) => pattern.test(text))) return 'others'
  if (brief.some((pattern) => pattern.test(text)) || (passing.test(text) && !lasting.test(text)))
    return 'passing'
  if (!(han.test(text) ? ofUserHan : ofUser).test(text)) return 'others'
  return null
}
