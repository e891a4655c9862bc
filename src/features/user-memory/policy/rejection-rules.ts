import type { RejectionReason } from '../../../state/ports/memories.ts'

/** Secrets by their name, with a value after it. */
const secretName =
  /(?<!\p{L})(?:pass(?:word|code|phrase|wort)|pwd|secret(?:[ _-](?:access[ _-])?key)?|(?:api|access|private|licen[cs]e)[ _-]?key|(?:access|api|auth|bearer)?[ _-]?token|credentials?|cvv|cvc|(?:security|verification|confirmation|one[ -]time|otp|auth\p{L}{0,12}|unlock|door|gate|alarm|entry|access|backup|recovery) codes?|(?:sicherheits|zugangs|tür|alarm|bestätigungs|wiederherstellungs)codes?|código (?:de|del) (?:la )?(?:seguridad|acceso|verificación|recuperación|alarma|puerta)|(?:recovery|seed|backup|mnemonic) (?:phrase|words|key)|kennwort|losungswort|geheimzahl|contraseña|frase de recuperación)(?!\p{L})(?![\s-]+(?:policy|policies|manager|rules?|rotation|requirements?|protected))/iu
const isValue =
  /(?:(?<!\p{L})(?:is|are|was|ist|lautet|war|es|son|era)(?!\p{L})|[:=]|\bset to\b)\s*["'“„«]?\S{3,}/iu
/** Names that are also of harmless things: a secret only with a digit after them. */
const codeName =
  /(?<!\p{L})(?:pin(?:[ -]?(?:code|nummer))?|(?<!(?:zip|post|postal|area|country|dialling|dialing|status|error|cost|product|project) )code(?! (?:base|names?|style))|código(?! postal)|clave)(?!\p{L})[^\d]{0,60}\d{3,}/iu
const secretNameHan =
  /(?:密码|口令|密钥|秘钥|验证码|助记词|安全码|恢复码|门禁码|令牌|暗号|PIN码?|パスワード|パスフレーズ|暗証番号|合言葉|秘密鍵|(?:認証|復旧|リカバリー|セキュリティ)コード|アクセストークン|API\s*キー|api\s*key)[^，。、]{0,8}?(?:是|为|叫|は|が|:|=|\s)\s*["“「『]?(?:[A-Za-z0-9][\w#@!$%^&*.-]{2,}|\d{3,})|(?:密码|口令|暗号|パスワード|合言葉)(?:是|为|は)["“「『]?[\p{L}\p{N}]{2,}/iu
/** A password written as a word with a digit or a sign in it. */
const oddWord = /\bpass(?:word|code|wort)?\s+(?=\S{0,60}[\d!@#$%^&*+=_])\S{4,}/i
/** Identity papers and accounts with their number. */
const numbered =
  /(?:passport|reisepass|pasaporte|driv(?:er'?s?|ing) licen[cs]e|führerschein|permiso de conducir|national id|id card|identity card|ausweis|(?<!\p{L})(?:dni|nie|nif)|social security|sozialversicherung|seguridad social|tax(?:payer)? id|steuer|bank account|konto|cuenta|(?:credit|debit) card|kreditkarte|tarjeta|身份证|护照|驾照|驾驶证|社保|银行卡|账户|账号|マイナンバー|パスポート|免許証|口座|クレジットカード|保険証).{0,40}?(?:(?:\d[ .-]?){5}|(?<![A-Z0-9])(?=[A-Z]{0,12}\d)[A-Z0-9]{6,})/iu

const shapes: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{16,}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bgh[pousr]_[A-Za-z0-9]{30,}/,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/,
  /\beyJ[A-Za-z0-9_-]{8,100}\.[A-Za-z0-9_-]{8,}/,
  /\bbearer\s+[A-Za-z0-9._~+/-]{16,}/i,
  /-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)/,
  /\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s/:@]{1,500}:[^\s/@]{1,500}@/i,
  /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,}\b/,
  /\b\d{3}-\d{2}-\d{4}\b/,
  /(?<!\d)\d{17}[\dXx](?!\d)/,
  /(?<!\d)(?:\d[ -]?){13,19}(?!\d)/,
  /\b(?=[a-f]*\d)[0-9a-f]{32,}\b/i,
]

/** Whether a text has a credential or a secret number. A false alarm only means that it is not remembered. */
const holdsSecret = (text: string): boolean =>
  [...shapes, oddWord, codeName, secretNameHan, numbered].some((pattern) => pattern.test(text)) ||
  (secretName.test(text) && isValue.test(text.slice(text.search(secretName))))

/** The user as the one that a statement is about, not as an owner ("the user's sister"). */
const userSubject =
  /(?<!\p{L})(?:(?:the )?user(?!['’]s|\p{L})|(?:(?:der|die) )?(?<!de[srmn] )(?:(?:be)?nutzer|anwender)(?:in)?(?!\p{L})|(?<!del |de la )usuari[oa](?!\p{L})|(?:i|we|ich|wir|yo|je|nous)(?!\p{L}))/iu
/** Any word for the user, in languages that write it in Latin, Chinese or Japanese letters. */
const anyUser =
  /(?<!\p{L})(?:users?|(?:be)?nutzer(?:in|s)?|anwender(?:in|s)?|usuari[oa]s?|utilisat(?:eur|rice)|utente|usuári[oa]|gebruiker|användaren?|brukeren?|brugeren?|käyttäjän?|użytkownik\p{L}{0,3}|uživatel\p{L}{0,2}|felhasználó|utilizator(?:ul)?|korisnik|kullanıcı|pengguna|i|me|my|we|us|our|ich|mi[rch]{0,2}|meine?[rmns]?|wir|uns|unsere?[rmns]?|yo|mis?|nos|nosotr[oa]s|nuestr[oa]s?|je|mon|ma|mes|nous|notre)(?!\p{L})|用户|使用者|我|本人|咱|ユーザー?|利用者|私|僕|俺|自分/iu
const person =
  /(?<!\p{L})(?:(?:ex|step|grand|schwieger|groß)-?)?(?:wife|husband|partner(?:in)?|spouse|fianc\p{L}{1,2}|(?:girl|boy)?friends?|mother|mum|mom|father|dad|parents?|son|daughter|child|children|kids?|brother|sister|siblings?|uncle|aunt|cousine?|nephew|niece|boss|(?<!(?:password|package|window|task|file) )manager|(?:co-?)?workers?|colleagues?|intern|trainee|director|ceo|cto|cfo|secretary|accountant|lawyer|contractor|neighbou?rs?|customers?|(?<!(?:e?-?mail|git|sql|http|ftp|ssh|vpn|chat) )clients?(?!e)|teacher|tutor|coach|doctor|dentist|therapist|landlord|(?:room|flat|house)mate|(?:ehe)?frau|(?:ehe)?mann|freund(?:in)?|mutter|vater|eltern|sohn|tochter|kind(?:er)?(?! of)|bruder|schwester|geschwister|oma|opa|onkel|tante|neffe|nichte|chef(?:in)?|vorgesetzte\p{L}?|kolleg(?:e|in)|nachbar(?:in)?|kund(?:e|in)|lehrer(?:in)?|arzt|ärztin|anwalt|anwältin|mitbewohner(?:in)?|vermieter(?:in)?|espos[oa]|marido|mujer|pareja|novi[oa]|madre|padres?|hij[oa]s?|herman[oa]s?|abuel[oa]|tí[oa]|prim[oa]|sobrin[oa]|amig[oa]|jef[ea]|compañer[oa]|colega|vecin[oa]|cliente(?! de (?:correo|git|sql))|profesora?|médic[oa]|abogad[oa]|suegr[oa]|cuñad[oa])(?:e|n|en|innen|s|es)?(?!\p{L})(?! (?:tongue|language|company|country|data|database|list|portal|service|support|system|program|policy))/iu
const personHan =
  /^(?:(?:用户|我|我们|咱们?)(?:[^，。的]{0,4}的)?(?:妈妈|母亲|爸爸|父亲|父母|老婆|妻子|老公|丈夫|爱人|[女男]朋友|儿子|女儿|孩子|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|外公|外婆|叔叔|阿姨|朋友|同事|老板|领导|经理|主管|上司|秘书|实习生|律师|医生|供应商|邻居|客户|同学|老师|房东|室友)|(?:ユーザー?|利用者|私|僕|俺)の.{0,6}?(?:妻|夫|母|父|両親|息子|娘|子供|子ども|兄|弟|姉|妹|祖父|祖母|叔父|叔母|いとこ|甥|姪|友人|友達|親友|彼女|彼氏|恋人|上司|部下|同僚|先輩|後輩|先生|医者|弁護士|隣人|大家|顧客|取引先|ルームメイト)(?:さん|たち)?(?:は|が|も|の)|[他她]们?|彼女?は)/u

/** Letters of the scripts in which `anyUser` knows the user. */
const knownScript = /[\p{Script=Latin}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u

/** Whether a statement is about another person: one is named before the user is, or the user is not named at all. */
const isAboutOthers = (text: string, isInstruction: boolean): boolean => {
  const subject = text.search(userSubject)
  const head = subject < 0 ? text.split(' ', 4).join(' ').length : subject
  const other = text.search(person)
  if (personHan.test(text) || (other >= 0 && other < head)) return true
  return !isInstruction && !mentionsUser(text)
}

/** Whether a text has a word for its user or the first person; yes where its script is not known. */
export const mentionsUser = (text: string): boolean =>
  anyUser.test(text) || (/\p{L}/u.test(text) && !knownScript.test(text))

/**
 * A reaction to what was said before ("I doubt it."), which says nothing by itself: the user, words of degree, a verb of opinion, and
 * nothing but words that point at what was said.
 */
const reactions: readonly RegExp[] = [
  /^(?:(?:the )?user|i|we)(?:['’](?:m|ve|d|ll))?(?: (?:am|is|are|was|has|have|had|do|does|did|will|would|can|could|should|might|must|(?:do|does|did|wo|would|ca|could|is|are|has|have)n['’]t|can(?:not)?|not|no|my|their|some|really|still|just|also|too|very|much|highly|quite|rather|so|totally|completely|strongly|fully|seriously|only|never|be)){0,4} (?:doubt(?:s|ed|ful)?|think|thought|guess|hope|know|knew|agree|disagree|believe|suppose|assume|suspect|wonder|(?:see|saw)(?=s? (?:it|that|this|what you)(?! much|\p{L}))|(?<=^(?:i|we) )see(?=\W{0,9}$)|understand|get|mean|meant|mind|care|like|prefer|say)(?:e?[sd])?(?: (?:it|so|that|this|these|those|not|too|either|more|less|better|about|of|on|with|to|in|at all|you|here|there|now|though|anymore|anyway|much|(?:what|how) you (?:mean|say|said)|can be|is|was|true|right|wrong)){0,5}[\s.!…]{0,9}$/iu,
  /^(?:(?:the )?user|i|we)(?:['’](?:m|ve|d|re))?(?: (?:am|is|are|was|has|have|do|does|did|feel|seem|would|be|not|(?:is|are|has|have|would)n['’]t|really|still|just|also|very|quite|rather|so|a (?:bit|little)|totally|completely|fully|my|their|some|no|a|an|serious)){0,4} (?:(?:un)?sure|(?:un)?certain|s[kc]eptical|(?:un)?convinced|confused|doubtful|afraid|fine|okay?|happy|good|idea|clue|opinion|doubts?|objections?|preference)(?: (?:so|not|it|that|this|about|of|on|with|either|though|yet|anymore|at all)){0,4}[\s.!…]{0,9}$/iu,
  /^(?:(?:das|dem|da|daran|so|es|darüber) )?(?:(?:ich|wir|(?:der|die) (?:be)?nutzer(?:in)?) )?(?:(?:be)?zweif(?:le|el[nt])|glaub(?:e|t|en)|denk(?:e|t|en)|hoff(?:e|t|en)|vermut(?:e|et|en)|weiß|wissen|versteh(?:e|t|en)|mein(?:e|t|en)|find(?:e|et|en)|(?:sehe|sehen|sieht)(?:(?<=^(?:das|es|so) .{0,30})|(?=.{0,60} (?:das|es|so(?! gut| schlecht)|anders|genauso)(?!\p{L})))|stimm(?:e|t|en)|bin|ist|sind|hab(?:e|en)|hat|nehme)(?: (?:ich|wir|mir|uns|sich|es|das|dem|ihm|dir|ihnen|da|daran|darüber|davon|so|auch|nicht|kaum|schon|noch|sehr|stark|ganz|eher|wohl|doch|leider|nur|zu|an|anders|genauso|gut|schlecht|richtig|falsch|(?:un)?sicher|einverstanden|skeptisch|überzeugt|meine?|keine?|einige|zweifel|ahnung|meinung)){0,6}[\s.!…]{0,9}$/iu,
  /^(?:yo|je) (?:ne |lo |le )?(?:dudo|creo|espero|sé|entiendo|doute|pense|crois|sais|comprends)(?: (?:que sí|que no|eso|pas|ça|en|no|lo)){0,3}[\s.!…]{0,9}$/iu,
  /^(?:(?:这|那|对此|这一?点|那一?点)，?)?(?:我们?|用户)(?:也|都|很|不|没有?|有点|有些|并|真的|还是?|是|就|只|太|敢|非常|完全|十分|这么|这样|那么|能|可以|表示|觉得|有|对(?:此|这|这个|这一?点)){0,5}(?:怀疑|觉得|认为|以为|知道|同意|赞成|反对|明白|清楚|理解|懂|希望|猜|想|确定|肯定|相信|信|意见|看法|疑问|疑虑|异议|好奇)(?:这|那|它|是|不|太|的|了|吧|啊|呢|点|一点|么|你的?|这么|这样|没错|对|错|说|看法|意见|说法|很|大|可能){0,5}[\s。.！!…]{0,9}$/u,
]

/**
 * Why a statement is refused whatever a model says of it: it holds a secret, or it is about another person. Rules approve
 * nothing. `kind`: an instruction has no subject. At most 1,000 characters are read.
 */
export const findRejectionReason = (
  content: string,
  kind: 'instruction' | 'statement' = 'statement',
): RejectionReason | null => {
  const text = content.slice(0, 1000).normalize('NFKC')
  if (!/[\p{L}\p{N}]/u.test(text) || reactions.some((reaction) => reaction.test(text))) return 'empty'
  if (holdsSecret(text)) return 'secret'
  return isAboutOthers(text, kind === 'instruction') ? 'others' : null
}
