import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'http-request', tables: [] })
