import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'a2a', tables: ['agent_cards', 'agent_pushes', 'remote_agents'] })
