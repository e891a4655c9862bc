import { defineFeature } from '../definitions.ts'

export default defineFeature({
  id: 'a2a',
  tables: ['agent_cards', 'agent_pushes', 'remote_agents'],
  sealed: [
    {
      name: 'agent_pushes',
      id: 'push_id',
      owner: "'' AS vendor_id, tenant AS business_id",
      purpose: 'push',
    },
  ],
})
