import type { App, ServerContext } from '../route.ts'
import { chatRoutes } from './chat.routes.ts'
import { embeddingsRoutes } from './embeddings.routes.ts'
import { modelsRoutes } from './models.routes.ts'

/** The OpenAI-compatible door: the models of the registry for any client that speaks OpenAI's API. */
export const doorRoutes = (app: App, server: ServerContext): void => {
  chatRoutes(app, server)
  embeddingsRoutes(app, server)
  modelsRoutes(app, server)
}
