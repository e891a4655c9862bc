import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { businessQuery } from '../../routes/parameters.ts'
import { HttpError } from '../../routes/problems.ts'
import { type App, createDocs, respondsWith } from '../../routes/route.ts'
import { isMasonError, MasonError } from '../../state/errors.ts'
import {
  fileIdSchema,
  fileNameSchema,
  fileTypeSchema,
  maxUploadBytes,
  type UploadedFile,
  uploadedFileSchema,
} from '../../state/uploaded-file.ts'

const byteCount = z.preprocess(
  (value) => (typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value),
  z
    .int('must be a number of bytes')
    .min(0, 'must be 0 or more')
    .max(maxUploadBytes, `must be at most ${maxUploadBytes}, which is 512 MB; split the file`),
)
const uploadHeaders = z.looseObject({
  'x-file-name': z.preprocess(
    (value) => (typeof value === 'string' ? decodeName(value) : value),
    fileNameSchema.describe('A file name, with its folders; percent-encoded where it is not ASCII'),
  ),
  'content-type': fileTypeSchema.describe('Its media type; absent: application/octet-stream').optional(),
  'x-sha256': z
    .string()
    .regex(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits')
    .describe('The hash of the bytes: others are refused')
    .optional(),
  'upload-length': byteCount
    .describe('Bytes that the file will have, for an upload that can be resumed')
    .optional(),
})
const appendHeaders = z.looseObject({
  'upload-offset': byteCount.describe('Bytes that the upload has'),
})
const fileParams = z.strictObject({ id: fileIdSchema.describe('The id of the file') })
const receivedSchema = uploadedFileSchema.pick({ id: true, sha256: true, bytes: true })

/** Headers are ASCII: other characters of a name are percent-encoded. A name that cannot be decoded is meant as it is. */
const decodeName = (value: string): string => {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

const describe = createDocs('files')
const offsets = { 'upload-offset': 'Bytes received so far', 'upload-length': 'Bytes it will have' }

/** Files that runs name by `file_id`: receive, resume, look up, delete. */
export const filesRoutes = (app: App): void => {
  app.post('/v1/files', {
    schema: { querystring: businessQuery, headers: uploadHeaders },
    config: describe('submit', 'uploadFile', 'Stores a file that runs can name', {
      description:
        'The body is the bytes. With upload-length the upload can be resumed: its id is returned at once where the body is empty, and PATCH appends.',
      streamed: true,
      responses: {
        201: {
          description: 'The file',
          schema: receivedSchema,
          headers: { location: 'Path of the file', ...offsets },
        },
        200: { description: 'The business has these bytes already', schema: receivedSchema },
      },
      problems: ['quota_exceeded', 'unsupported_media_type'],
    }),
    handler: async ({ business, body, headers }, reply) => {
      checkEncoding(headers)
      const { 'upload-length': length, ...input } = uploadHeaders.parse(headers)
      const upload = {
        name: input['x-file-name'],
        type: input['content-type'] ?? 'application/octet-stream',
        sha256: input['x-sha256']?.toLowerCase() ?? null,
      }
      if (length === undefined) {
        const announced = Number(headers['content-length'] ?? 0)
        const { file, isKnown } = await business.files.receive(upload, toChunks(body), announced)
        return sendFile(reply.code(isKnown ? 200 : 201), file)
      }
      const { id } = await business.files.open({ ...upload, length })
      return sendFile(reply.code(201), await business.files.append(id, 0, toChunks(body)))
    },
  })

  app.patch('/v1/files/:id', {
    schema: { params: fileParams, querystring: businessQuery, headers: appendHeaders },
    config: describe('submit', 'appendToFile', 'Appends bytes to an upload', {
      description:
        'upload-offset is the number of bytes that it has. After a lost response HEAD returns it; what arrived of a body that broke off is kept.',
      streamed: true,
      responses: { 200: { description: 'The file', schema: receivedSchema, headers: offsets } },
      problems: ['upload_offset', 'unsupported_media_type'],
    }),
    handler: async ({ business, params, body, headers }, reply) => {
      checkEncoding(headers)
      const offset = appendHeaders.parse(headers)['upload-offset']
      try {
        return sendFile(reply, await business.files.append(params.id, offset, toChunks(body)))
      } catch (error) {
        if (isMasonError(error, 'upload_offset'))
          reply.header('upload-offset', (error.detail as { upload_offset: number }).upload_offset)
        throw error
      }
    },
  })

  app.get('/v1/files/:id', {
    schema: { params: fileParams, querystring: businessQuery },
    config: describe('submit', 'getFile', 'Returns a file and how much of it is there', {
      description: 'HEAD returns upload-offset and upload-length alone.',
      responses: { 200: { description: 'The file', schema: uploadedFileSchema, headers: offsets } },
    }),
    handler: async ({ business, params: { id } }, reply) => {
      const file = (await business.files.get(id)) ?? throwNoSuchFile(id)
      setOffsets(reply, file)
      return file
    },
  })

  app.delete('/v1/files/:id', {
    schema: { params: fileParams, querystring: businessQuery },
    config: describe(
      'delete',
      'deleteFile',
      'Deletes a file; sessions keep the bytes that their runs name',
      respondsWith(204, 'It is deleted'),
    ),
    handler: async ({ business, params: { id } }, reply) => {
      if (!(await business.files.remove(id))) throwNoSuchFile(id)
      return reply.code(204).send()
    },
  })
}

const throwNoSuchFile = (id: string): never => {
  throw new MasonError('not_found', `there is no file "${id}"`, {
    remedy: 'files that no run names are deleted after some days; upload it again',
  })
}

/** The chunks of a streamed body; none where there is no body. */
const toChunks = (body: unknown): AsyncIterable<Uint8Array> =>
  (body as AsyncIterable<Uint8Array> | undefined) ?? noChunks()

async function* noChunks(): AsyncGenerator<Uint8Array> {}

const checkEncoding = (headers: FastifyRequest['headers']): void => {
  if ((headers['content-encoding'] || 'identity').toLowerCase() === 'identity') return
  throw new HttpError('unsupported_media_type', 'the body is compressed', {
    remedy: 'send the bytes of the file as they are, without content-encoding',
  })
}

const setOffsets = (reply: FastifyReply, { bytes, length }: UploadedFile): void => {
  reply.header('upload-offset', bytes).header('cache-control', 'no-store')
  if (length !== null) reply.header('upload-length', length)
}

const sendFile = (reply: FastifyReply, file: UploadedFile): FastifyReply => {
  setOffsets(reply, file)
  const { id, sha256, bytes } = file
  return reply.header('location', `/v1/files/${id}`).send({ id, sha256, bytes })
}
