import type { Egress } from '../../infra/egress/egress-port.ts'
import { MasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Models } from '../../state/ports/models.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { Json } from '../../state/runtime-state.ts'
import type { ModelGateway } from '../ports/call-ports.ts'
import type {
  ModelCaller,
  ModelEntry,
  Provider,
  ProviderRequest,
  Registry,
  ResponseReader,
} from '../ports/model-ports.ts'
import { canServeCategory } from '../routing/candidate-order.ts'
import type { ModelChooser } from '../routing/choose-model-and-key.ts'
import { builtInCategories } from '../schemas/catalog.ts'
import type { FormatTestView } from '../schemas/model-probe.ts'
import type { FormatInput, FormatView } from '../schemas/response-format.ts'
import { createUnsentOutcome } from '../transport/provider-errors.ts'
import type { AnswerDraft } from './answer-exchange.ts'

/** What asks models on behalf of a role. */
export type AskServices = {
  ask: ModelGateway['ask']
  registry: Pick<Registry, 'view'>
  chooser: ModelChooser
  log: Log
}

/** How models are asked, and their answers read, that have formats of their own or are no models of chat and embeddings. */
export type ResponseFormats = {
  /** Those of every registry. */
  builtIn: readonly FormatInput[]
  /** Compiled once for each format. Throws for one that `findErrors` refuses. */
  compile(format: FormatView): ResponseReader
  /** A draft of an answer that comes as server-sent events, or whole. */
  openDraft(reader: ResponseReader, request: Pick<ProviderRequest, 'usedIds' | 'onDelta'>): AnswerDraft
  /** The protocol `http`: any vendor, with a request template and a response format. */
  openProvider(options: {
    egress: Egress
    clock: Clock
    /** The largest answer, in bytes after decompression. */
    maxBytes?: number
    /** The longest event or line of a stream, in characters. */
    maxEvent?: number
  }): Required<Provider>
  /** In OpenAI's protocol, the model with the format of its category; null: it is one of chat or embeddings. */
  ofCategory(model: ModelEntry): ModelEntry | null
  /** Absent: none ranks documents. */
  createReranker?(services: AskServices, caller: ModelCaller): NonNullable<Models['rerank']>
  findErrors(format: FormatInput): FieldError[]
  /** Reads a response with a stored format. */
  test(format: FormatView, raw: Json): FormatTestView
}

const missing = 'this server reads no response formats'
const refuse = (): never => {
  throw new MasonError('not_found', missing, { remedy: 'run it with the feature that reads them' })
}
const refuseRequest = async () =>
  createUnsentOutcome(
    'model_bad_request',
    `was not asked: ${missing}`,
    'run Mason with the feature that reads them',
  )
const needsFormat = (name: string): boolean => name !== 'embedding' && !canServeCategory(name, 'text')

/** Without a feature that has them. */
export const noResponseFormats: ResponseFormats = {
  builtIn: [],
  compile: refuse,
  openDraft: refuse,
  openProvider: () => ({ prepare: async () => {}, send: refuseRequest, poll: refuseRequest }),
  ofCategory: (model) =>
    builtInCategories.some((name) => name === model.category && needsFormat(name)) ? model : null,
  findErrors: () => [{ pointer: '', detail: missing }],
  test: refuse,
}
