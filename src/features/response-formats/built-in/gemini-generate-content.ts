import type { FormatPaths } from '../../../models/schemas/response-format.ts'
import { copyFields, defineFormat } from './format-declaration.ts'

/**
 * Source: Google's API reference, "Generating content"; events (`alt=sse`) have the shape of whole responses. Thought
 * tokens are counted apart from candidate tokens and billed as output.
 */

const added = (...names: string[]): string =>
  `usageMetadata.[${names.join(', ')}][] | length(@) > \`0\` && sum(@)`

const paths: FormatPaths = {
  text: "candidates[0].content.parts[?!thought].text || candidates[0].finishReason && ''",
  reasoning: 'candidates[0].content.parts[?thought].text',
  // arguments in parts, which only a request for them brings, are refused
  tool_calls:
    'candidates[0].content.parts[].functionCall.' +
    "[{id: id, name: name, arguments: args || `{}`}, willContinue && 'arguments in parts' || `null`][]",
  images: 'candidates[0].content.parts[?!thought].inlineData.{base64: data, mime_type: mimeType}',
  finish: 'candidates[0].finishReason || promptFeedback.blockReason',
  model: 'modelVersion',
  error: 'error',
  usage: {
    prompt_tokens: added('promptTokenCount', 'toolUsePromptTokenCount'),
    completion_tokens: added('candidatesTokenCount', 'thoughtsTokenCount'),
    total_tokens: 'usageMetadata.totalTokenCount',
    cached_tokens: 'usageMetadata.cachedContentTokenCount',
    reasoning_tokens: 'usageMetadata.thoughtsTokenCount',
  },
}

const parts =
  "map(&(type == 'text' ? {text: text} : base64 ? {inlineData: {mimeType: mime_type, data: base64}} : " +
  '{fileData: {fileUri: url}}), parts)'
/** Gemini 3 needs the signature of its thoughts; this value marks calls without one. */
const calls =
  "map(&{functionCall: {name: name, args: from_json(arguments)}, thoughtSignature: 'skip_thought_signature_validator'}, " +
  'tool_calls || `[]`)'
const result = '[{functionResponse: {name: name || tool_call_id, response: {result: content}}}]'

/** Roles must alternate, and the results of one turn are one message. */
const contents =
  "{{join_neighbours(messages[?role != 'system'].{role: role == 'assistant' ? 'model' : 'user', " +
  `parts: role == 'tool' ? ${result} : [${parts}, ${calls}][]} | [?parts], 'role', 'parts')}}`

const choice =
  "tool_choice == 'required' ? {mode: 'ANY'} : tool_choice == 'none' ? {mode: 'NONE'} : tool_choice.function.name ? " +
  "{mode: 'ANY', allowedFunctionNames: [tool_choice.function.name]} : {mode: 'AUTO'}"

/** Gemini's generateContent. */
export const geminiGenerateContent = defineFormat({
  name: 'gemini-generate-content',
  /** Under https://generativelanguage.googleapis.com/v1beta. Source: Google's API reference, "Generating content" and "Thought signatures". */
  post: '/models/{{model}}:generateContent',
  headers: { 'x-goog-api-key': '{{key}}' },
  postStream: '/models/{{model}}:streamGenerateContent?alt=sse',
  body: {
    systemInstruction: '{{system ? {parts: [{text: system}]} : `null`}}',
    contents,
    tools:
      '{{tools ? [{functionDeclarations: ' +
      'tools[].{name: name, description: description, parametersJsonSchema: parameters}}] : `null`}}',
    toolConfig: `{{tools && tool_choice ? {functionCallingConfig: ${choice}} : \`null\`}}`,
    generationConfig: {
      ...copyFields('temperature', 'seed'),
      responseMimeType: "{{schema ? 'application/json' : `null`}}",
      responseJsonSchema: '{{schema}}',
      thinkingConfig: '{{parameters.thinking_config}}',
      topP: '{{top_p}}',
      topK: '{{top_k}}',
      maxOutputTokens: '{{max_tokens}}',
      stopSequences: '{{stop ? to_array(stop) : `null`}}',
    },
  },
  paths,
  stream: { format: 'sse', paths },
})
