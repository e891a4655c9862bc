import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'model-probes', tables: [] })
