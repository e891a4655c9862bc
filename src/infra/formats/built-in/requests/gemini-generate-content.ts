import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

const parts =
  "map(&(type == 'text' ? {text: text} : base64 ? {inlineData: {mimeType: mime_type, data: base64}} : " +
  '{fileData: {fileUri: url}}), parts)'
/** Gemini 3 wants back the signature of its thoughts, which never leaves it; this word stands for calls without one. */
const calls =
  "map(&{functionCall: {name: name, args: from_json(arguments)}, thoughtSignature: 'skip_thought_signature_validator'}, " +
  'tool_calls || `[]`)'
const result = '[{functionResponse: {name: name || tool_call_id, response: {result: content}}}]'

/** Roles must alternate, and results belong together as calls do. */
const contents =
  "{{join_neighbours(messages[?role != 'system'].{role: role == 'assistant' ? 'model' : 'user', " +
  `parts: role == 'tool' ? ${result} : [${parts}, ${calls}][]} | [?parts], 'role', 'parts')}}`

const choice =
  "tool_choice == 'required' ? {mode: 'ANY'} : tool_choice == 'none' ? {mode: 'NONE'} : tool_choice.function.name ? " +
  "{mode: 'ANY', allowedFunctionNames: [tool_choice.function.name]} : {mode: 'AUTO'}"

/** Under https://generativelanguage.googleapis.com/v1beta. Source: Google's API reference, "Generating content" and "Thought signatures". */
export const geminiGenerateContentRequest: RequestTemplate = {
  method: 'POST',
  path: '/models/{{model}}:generateContent',
  stream_path: '/models/{{model}}:streamGenerateContent?alt=sse',
  headers: { 'x-goog-api-key': '{{key}}' },
  body: {
    systemInstruction: '{{system ? {parts: [{text: system}]} : `null`}}',
    contents,
    tools:
      '{{tools ? [{functionDeclarations: ' +
      'tools[].{name: name, description: description, parametersJsonSchema: parameters}}] : `null`}}',
    toolConfig: `{{tools && tool_choice ? {functionCallingConfig: ${choice}} : \`null\`}}`,
    generationConfig: {
      responseMimeType: "{{schema ? 'application/json' : `null`}}",
      responseJsonSchema: '{{schema}}',
      thinkingConfig: '{{parameters.thinking_config}}',
      temperature: '{{temperature}}',
      topP: '{{top_p}}',
      topK: '{{top_k}}',
      maxOutputTokens: '{{max_tokens}}',
      stopSequences: '{{stop ? to_array(stop) : `null`}}',
      seed: '{{seed}}',
    },
  },
}
