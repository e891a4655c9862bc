const han = /\p{Script=Han}/u

const people =
  '(?:(?:ex|step|grand)-?)?(?:wife|husband|partner|spouse|fianc\\w+|girlfriend|boyfriend|mother|mum|mom|father|dad|parents?|son|daughter|child|children|kids?|brother|sister|siblings?|grand(?:mother|father|ma|pa|son|daughter)|uncle|aunt|cousin|nephew|niece|friends?|boss|manager|colleagues?|coworkers?|co-workers?|intern|trainee|apprentice|director|ceo|cto|cfo|secretary|accountant|lawyer|vendor|contractor|neighbou?rs?|customers?|clients?|supplier|teacher|tutor|coach|doctor|dentist|therapist|landlord|tenant|roommate|flatmate|housemate|assistant)'
const peopleHan =
  '(?:妈妈|母亲|爸爸|父亲|父母|老婆|妻子|老公|丈夫|爱人|女朋友|男朋友|儿子|女儿|孩子|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|外公|外婆|叔叔|阿姨|朋友|同事|老板|领导|经理|主管|秘书|实习生|律师|医生|供应商|邻居|客户|同学|老师|房东|室友)'

const namedPatterns: readonly RegExp[] = [
  new RegExp(
    `^(?:my|our|the user's|user's) (?:\\w+ )?${people}\\b(?! (?:data|database|list|portal|service|support|system|program\\w*|policy)\\b)`,
  ),
  new RegExp(`^(?:我|我的|我们|我们的|咱们?|用户|用户的)${peopleHan}`),
  /^(?:he|she|they|his|her|their)\b/,
  /^(?:他|她|他们|她们)/,
]

/** Words that refer to the user. */
const user = /\b(?:i|i'm|i've|i'd|i'll|me|my|mine|we|our|us|user|user's|users)\b/
const userHan = /我|用户|咱|本人/

/** Attributes of a person: as a subject without an owner, the user's. */
const attribute =
  /^(?:(?:native|first|mother|preferred|favou?rite|home|current|full|last|middle|blood|job|shoe|working|date of) )*(?:name|nickname|pronouns|birthday|birth|age|language|tongue|time ?zone|address|(?:post|postal|zip) ?code|city|town|country|nationality|job|title|profession|occupation|employer|diet|religion|type|size|height|weight|hours|hobby|hobbies|major|laptop|computer|phone|car|bike|office|company|school|university|budget|browser|editor|operating system)(?=$|[:=]| (?:is|are|was|has|falls|starts|ends)\b)/
const attributeHan =
  /^(?:出生)?(?:姓名|名字|昵称|生日|年龄|性别|母语|时区|住址|家乡|老家|籍贯|国籍|民族|职业|工作|专业|学历|爱好|兴趣|血型|身高|体重|星座|信仰|公司|团队|部门|手机|电脑|家里|最?喜欢|最爱|常用|使用|习惯|偏好)/

const presentVerbs =
  'lives|works|prefers|likes|dislikes|loves|hates|wants|needs|speaks|uses|owns|drives|drinks|eats|studies|teaches|plays|runs|thinks|says|knows|goes|comes|makes|takes|gets|gives|sees|keeps|sells|buys|supports|offers|contains|enjoys|avoids|collects|travels|commutes|reads|writes|cooks|rides|watches|listens|manages|leads|trains|suffers|expects|follows|believes|tends|belongs|means|costs|starts|ends|opens|closes'
const pastVerbs =
  'won|grew|wrote|invented|founded|discovered|bought|sold|said|announced|became|died|went|came|made|got|left|took|gave|moved|married|released|launched|scored|beat|rose|fell|lost|joined|lived|worked'
const startsWithVerb = new RegExp(`^(?:${presentVerbs}|has|is|was|does|can|will|would|\\w+n't)\\b`)
const verb = new RegExp(
  `\\b(?:is|are|was|were|has|have|had|will|can|could|does|did|${presentVerbs}|${pastVerbs})\\b`,
)
/** The end of the first clause, which has the subject. */
const clauseEnd = /[,;:(]| (?:and|but|or|who|which|that|because|since|so|when|where|if|while)\b/
const opening =
  /^(?:(?:in|on|at|for|when|while|if|with|as|during) [^,]*, ?|(?:also|only|usually|often|still|now|currently|mostly|generally|recently) )/

const another = /^(?:the|this|that|these|those)\b|^(?:dr|mr|mrs|ms|prof)\b\.?/

/** English: a subject before the first verb that is no attribute of a person. */
const hasOtherSubject = (text: string): boolean => {
  const statement = text.replace(opening, '')
  if (startsWithVerb.test(statement) || attribute.test(statement)) return false
  if (another.test(statement)) return true
  const [clause = ''] = statement.split(clauseEnd)
  return clause.search(verb) > 0
}

/** Chinese: a named person or thing with a verb; a title, or a surname with one. */
const otherSubjectsHan: readonly RegExp[] = [
  new RegExp(`^(?:[这那该某]|${peopleHan}(?!事务所)(?=\\p{Script=Han}))`, 'u'),
  /^(?!老是|小时候|小学|小孩)[小老阿][^\p{P}\s]{1,2}(?:是|在|有|会|喜欢|爱|最近|已|也|要|想|说|去|来|升|换)/u,
  /^[^\p{P}\s是做当想找也还常老而但每](?:先生|女士|小姐|总|经理|老师|教授|医生|师傅)(?=\p{Script=Han})/u,
  /^(?![不也都常])[^\p{P}\s是]{2,12}(?<!其实|主要|一直|本来|平时|目前|现在|通常|一般|经常|已经|[总还只不就或也都曾])是/u,
  /^(?!平时|周末|目前|现在|一直|长期|常|经常|每|从|曾|还|只|家里|喜欢|不)\p{Script=Han}{2,4}(?:位于|成立于|发布|出生于|任教|毕业于)/u,
]

/**
 * Whether a statement is about another person or thing than its user. One without a subject ("Allergic to nuts", "Tabs, not
 * spaces") is the user's.
 */
export const isAboutThirdParty = (text: string): boolean => {
  if (namedPatterns.some((pattern) => pattern.test(text))) return true
  if (!han.test(text)) return !user.test(text) && hasOtherSubject(text)
  if (userHan.test(text) || attributeHan.test(text)) return false
  return otherSubjectsHan.some((pattern) => pattern.test(text))
}
