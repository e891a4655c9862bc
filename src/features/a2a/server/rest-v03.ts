import { isJsonObject } from '../../../infra/lib/json-text.ts'

/**
 * The JSON of the HTTP binding of protocol 0.3, which the SDK translates in its express layer alone. It is the protobuf JSON of
 * that version (a2a.proto at v0.3.0): other names for parts and files, for one state, and for push configurations.
 */

type Json = Record<string, unknown>

const toPart = (part: unknown): unknown => {
  if (!isJsonObject(part) || (part.file === undefined && part.data === undefined)) return part
  const { file, data, ...rest } = part
  const { fileWithUri, fileWithBytes, mimeType = '', name = '' } = isJsonObject(file) ? file : {}
  return {
    ...rest,
    ...(isJsonObject(data) && { data: data.data }),
    ...(isJsonObject(file) && { filename: name, mediaType: mimeType }),
    ...(fileWithUri !== undefined && { url: fileWithUri }),
    ...(fileWithBytes !== undefined && { raw: fileWithBytes }),
  }
}

/** A push configuration of 1.0, flat. */
const toConfig = (config: unknown): unknown => {
  if (!isJsonObject(config)) return undefined
  const { authentication, ...rest } = config
  if (!isJsonObject(authentication)) return rest
  const { schemes, credentials } = authentication
  return { ...rest, authentication: { scheme: [schemes].flat()[0], credentials } }
}

/** A request of 0.3 as 1.0 has it. */
export const fromLegacyRequest = (body: unknown): Json => {
  if (!isJsonObject(body)) return {}
  if (isJsonObject(body.pushNotificationConfig)) return toConfig(body.pushNotificationConfig) as Json
  const { message, request = message, configuration, ...rest } = body
  if (!isJsonObject(request)) return rest
  const { content, ...fields } = request
  const { blocking, pushNotification, ...settings } = isJsonObject(configuration) ? configuration : {}
  return {
    ...rest,
    message: { ...fields, parts: Array.isArray(content) ? content.map(toPart) : content },
    configuration: {
      ...settings,
      returnImmediately: blocking === false,
      ...(pushNotification !== undefined && { taskPushNotificationConfig: toConfig(pushNotification) }),
    },
  }
}

const fromPart = (part: unknown): unknown => {
  if (!isJsonObject(part) || part.text !== undefined) return part
  const { data, raw, url, filename, mediaType, ...rest } = part
  if (data !== undefined) return { ...rest, data: { data: isJsonObject(data) ? data : { value: data } } }
  const file = raw === undefined ? { fileWithUri: url } : { fileWithBytes: raw }
  return { ...rest, file: { ...file, mimeType: mediaType, name: filename } }
}

const fromMessage = (message: unknown): unknown => {
  if (!isJsonObject(message)) return message
  const { parts, ...rest } = message
  return { ...rest, content: Array.isArray(parts) ? parts.map(fromPart) : [] }
}

const fromStatus = (status: unknown): unknown => {
  if (!isJsonObject(status)) return status
  const state = status.state === 'TASK_STATE_CANCELED' ? 'TASK_STATE_CANCELLED' : status.state
  return { ...status, state, ...(status.message !== undefined && { message: fromMessage(status.message) }) }
}

const fromArtifact = (artifact: unknown): unknown =>
  isJsonObject(artifact) && Array.isArray(artifact.parts)
    ? { ...artifact, parts: artifact.parts.map(fromPart) }
    : artifact

const fromTask = (task: Json): Json => ({
  ...task,
  status: fromStatus(task.status),
  ...(Array.isArray(task.artifacts) && { artifacts: task.artifacts.map(fromArtifact) }),
  ...(Array.isArray(task.history) && { history: task.history.map(fromMessage) }),
})

const fromConfig = ({ taskId, tenant: _, authentication, ...config }: Json): Json => ({
  name: `tasks/${String(taskId)}/pushNotificationConfigs/${String(config.id ?? '')}`,
  pushNotificationConfig: {
    ...config,
    ...(isJsonObject(authentication) && {
      authentication: { schemes: [authentication.scheme], credentials: authentication.credentials },
    }),
  },
})

/** A response or event of 1.0 as 0.3 has it. `isFinal`: a status update ends its stream. */
export const toLegacyJson = (json: unknown, isFinal = false): unknown => {
  if (!isJsonObject(json)) return json
  if (isJsonObject(json.task)) return { task: fromTask(json.task) }
  if (isJsonObject(json.statusUpdate)) {
    const { status } = json.statusUpdate
    return { statusUpdate: { ...json.statusUpdate, status: fromStatus(status), final: isFinal } }
  }
  if (isJsonObject(json.artifactUpdate))
    return {
      artifactUpdate: { ...json.artifactUpdate, artifact: fromArtifact(json.artifactUpdate.artifact) },
    }
  if (Array.isArray(json.configs))
    return { ...json, configs: json.configs.map((config) => fromConfig(config)) }
  if (json.taskId !== undefined && json.url !== undefined) return fromConfig(json)
  return json.status === undefined ? json : fromTask(json)
}
