import { z } from 'zod'
import { defineTool } from '../../graph/definitions.ts'
import { toUserContext } from '../../state/user-context.ts'

/** Fills `user_context` from what the database knows of the user: one fixed method, always run. */
export default defineTool({
  name: 'user-context',
  description: 'Fetches what is known of the user',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: [],
  writes: ['user_context'],
  needs: ['users'],
  async run(_state, { checkpoint, users, run }) {
    const user_context = toUserContext(await users.profile(run.user_id))
    const known = Object.keys(user_context)
    return checkpoint(
      {
        summary:
          known.length > 0 ? `Knows of the user: ${known.join(', ')}` : 'Nothing is known of the user yet',
        result: { fields: known },
        relevance: known.length > 0 ? 0.5 : 0,
      },
      { user_context },
    )
  },
})
