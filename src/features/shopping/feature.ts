import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'shopping', tables: [], needs: ['payments'] })
