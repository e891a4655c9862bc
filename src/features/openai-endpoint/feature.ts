import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'openai-endpoint', tables: [] })
