/** What a text asks or tells of the user himself, by its words alone. Patterns hold for whole questions or not at all. */

/** A name is written with a capital or in Han; "call me later" holds none. */
const han = String.raw`\p{Script=Han}{2,4}(?!\p{Script=Han})`
const name = String.raw`\p{Lu}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’.-]*){0,3}|${han}`
const place = String.raw`(?:the )?\p{Lu}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’.-]*){0,3}|${han}`
const noName = String.raw`(?!(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun|To)day|Tomorrow|ASAP)\b)`
const callsHimself = new RegExp(
  `(?<!\\b(?:not|[Nn]ever|stop|\\w+n['’]t) )\\b[Cc]all me ${noName}(${name})`,
  'u',
)

/** A question as people lead into it and end it, with nothing else in it: "do you know what my name is?" */
const whole = (core: string): RegExp =>
  new RegExp(
    `^(?:(?:so|and|hi|hello|hey|ok|okay|well|now|but|then|please|sorry)[,.!]?\\s+)*(?:(?:(?:do|can|could|would|will) you )?(?:still |please )*(?:know|remember|recall|say|tell me|remind me(?: of)?)\\s+)?(?:${core})(?:,? (?:again|now|please|currently))*\\s*[?？.!]*$`,
    'i',
  )
const wholeHan = (core: string): RegExp =>
  new RegExp(
    `^(?:请问|请|那么?|[你您]|还|能|可以|知道|记得|告诉我|，)*(?:${core})(?:来着|了|吗|呢|啊|呀)*\\s*[?？。.!！]*$`,
  )

/** What is asked for in one word and said in others: the first group of what says it is the value. */
export const aspects: readonly { asks: readonly RegExp[]; says: readonly RegExp[] }[] = [
  {
    asks: [
      whole(
        "(?:what(?:['’]s| is| was)? )?my (?:first |last |full )?name(?: is)?|who (?:am i|i am)|what (?:am i|i am|i['’]m) called",
      ),
      wholeHan('我叫(?:什么|啥)(?:名字)?|我的?(?:名字|姓名)(?:是|叫)?(?:什么|啥)?|我是谁'),
    ],
    says: [
      new RegExp(`\\b(?:[Mm]y name(?: is|['’]s)|(?:I am|I['’]m) called) (${name})`, 'u'),
      callsHimself,
      /^my name(?: is|['’]s) (?!(?:wrong|missing|secret)\b)(\p{Ll}[\p{L}'’-]*)[.!]?$/u,
      /我叫(?![了过做他她它你您人车])\s*(\p{Script=Han}{2,4}(?!\p{Script=Han})|[A-Za-z][\w-]*)/u,
      /我的名字[是叫]\s*(\p{Script=Han}{2,4}(?<!的)(?!\p{Script=Han})|[A-Za-z][\w-]*)/u,
      /^The user is (\p{Lu}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’.-]*){0,3})/u,
    ],
  },
  {
    asks: [
      whole(
        "where (?:do i live|am i (?:living|from|based|located)|i (?:live|am from|am based))|(?:(?:what|where)(?:['’]s| is)? )?my (?:home ?town|location)(?: is)?",
      ),
      wholeHan('我(?:现在)?(?:住|家)在?(?:哪[里儿]?|什么地方|哪个城市)'),
    ],
    says: [
      new RegExp(`\\bI (?:now )?(?:live in|am based in|(?:have )?moved to|am from) (${place})`, 'u'),
      /我(?:现在)?(?:住在|搬到|搬去)了?(\p{Script=Han}{2,10}?)了?(?=[，。,.！!\s]|$)/u,
      new RegExp(`^The user is .*\\bin (${place})\\.$`, 'u'),
    ],
  },
]

const ofMemory =
  /\b(?:know|remember)\b.{0,20}\b(?:about|of) me\b|\b(?:did|have) i (?:tell|told|say|said|mention)|\b(?:i|i['’]ve) (?:told you|said|mentioned)\b|(?:知道|记得|了解)(?:关于)?我(?!们)|我(?:说过|告诉过|提过)/i
/** Not "last time" alone: what was sold last time stands in a file. */
const ofEarlierTalk =
  /\bdid we (?:talk|speak|discuss)|\b(?:what|where) we (?:talked|spoke|discussed)|\bwhere (?:did we leave|we left) off\b|(?:上次|之前)我?们?(?:聊|谈)/i
const asks =
  /[?？]\s*$|^(?:what|who|whom|whose|when|where|which|why|how|do|does|did|am|is|are|can|could|will|tell me|remind me)\b|什么|谁|哪|几|吗|多少/i
const telling =
  /\b(?:my name is|i am|i'm|i live|i work|i (?:\w+ )?(?:like|love|prefer|hate|speak|never|always)|my [\w -]{1,40} (?:is|are)|remember that)\b|我(?:叫|是|住|喜欢|不喜欢|在|会)|记住/i

const verbs =
  'calculate|compute|work out|add|write|compose|draft|translate|rewrite|explain|summari[sz]e|describe|fix|check|correct|convert|order|book|buy|find|search|look|make|create|build|give|show|list|count|compare|sort|suggest|recommend|plan|help|send|tell|draw|imagine|answer'
/** The clause that gives a task: after "please", or an imperative that begins a sentence or stands after a comma. */
const tasks: readonly RegExp[] = [
  /\b(?:[Pp]lease|[Kk]indly|[Cc]an you|[Cc]ould you)\s+((?!call me [\p{Lu}\p{Script=Han}]|(?:remember|note|know|keep in mind|always|never)\b)\S.*)$/su,
  new RegExp(`(?:^|[.;:!]\\s*)((?:${verbs})\\b.*)$`, 'is'),
  new RegExp(
    `,\\s*(?:so |then )?((?:${verbs}) (?:it|this|that|these|those|me|my|us|an?|the|some|out|\\d).*)$`,
    'is',
  ),
  /(?:^|[，。；,;]\s*)((?:请(?!记住|叫我|记得)|帮我|给我|替我|计算|翻译|写).*)$/s,
]

export const isQuestion = (text: string): boolean => asks.test(text)

export const isAbout = (aspect: (typeof aspects)[number], question: string): boolean =>
  aspect.asks.some((pattern) => pattern.test(question.trim()))

/** A question that only memory can answer, whatever files there are. */
export const isAskedOfMemory = (question: string): boolean =>
  isQuestion(question) &&
  (ofMemory.test(question) ||
    ofEarlierTalk.test(question) ||
    aspects.some((aspect) => isAbout(aspect, question)))

/** What the user wants done in a text that may tell something besides, else null. */
export const taskIn = (text: string): string | null => {
  for (const pattern of tasks) {
    const task = pattern.exec(text.trim())?.[1]
    if (task) return task
  }
  return null
}

/** The user says something of himself, asks nothing and wants nothing done. */
export const isToldOfUser = (text: string): boolean =>
  !isQuestion(text.trim()) && (telling.test(text) || callsHimself.test(text)) && taskIn(text) === null
