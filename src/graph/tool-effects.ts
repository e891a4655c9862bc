import type { z } from 'zod'
import type { PlannedCall } from '../state/calls.ts'
import type { AnyTool, ToolEffects } from './definitions.ts'

type EffectfulTool = Pick<AnyTool, 'effects' | 'pure' | 'input'>

/** What all calls of a tool do; `varies` where it depends on their arguments. */
export const describeEffects = ({ effects, pure }: EffectfulTool): ToolEffects | 'varies' =>
  typeof effects === 'function' ? 'varies' : (effects ?? (pure === true ? 'none' : 'write'))

/** What a call with these arguments does; `write` where that cannot be known, as with arguments that refer to results. */
export const readToolEffects = (tool: EffectfulTool | undefined, args: PlannedCall['args']): ToolEffects => {
  if (typeof tool?.effects !== 'function') return tool?.effects ?? (tool?.pure === true ? 'none' : 'write')
  const parsed = (tool.input as z.ZodType).safeParse(args)
  try {
    const effects: unknown = parsed.success && tool.effects(parsed.data)
    return effects === 'none' || effects === 'read' ? effects : 'write'
  } catch {
    return 'write'
  }
}
