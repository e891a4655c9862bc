/** What OpenAI's chat shape and those that follow it have in common, as expressions over the canonical request. */

const imagesAsAddresses =
  "map(&(type == 'text' ? {type: 'text', text: text} : " +
  "{type: 'image_url', image_url: compact({url: url, detail: detail})}), parts)"

const calls = "tool_calls[].{id: id, type: 'function', function: {name: name, arguments: arguments}}"

/** A content that is more than text is a list of parts. */
export const chatMessages =
  `{{messages[].compact({role: role, content: parts[?type == 'image'] ? ${imagesAsAddresses} : content, ` +
  `reasoning_content: reasoning, tool_calls: ${calls}, tool_call_id: tool_call_id})}}`

/** For vendors that want a text as content, calls or not; `more` are members of a message. */
export const textMessagesWith = (more: string): string =>
  `{{messages[].compact({role: role, content: content || '', ${more}, tool_calls: ${calls}, tool_call_id: tool_call_id})}}`

export const chatTools =
  "{{tools[].{type: 'function', function: {name: name, description: description, parameters: parameters}}}}"

/** For vendors that know JSON answers, but no schema of them: that is in the system message. */
export const jsonObject = "{{json ? {type: 'json_object'} : response_format}}"

export const jsonSchema =
  "{{schema ? {type: 'json_schema', json_schema: {name: role, schema: schema, strict: is_strict(schema)}} : " +
  'response_format}}'
