import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'response-formats', tables: [] })
